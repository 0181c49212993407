"""Programs on one device for survey.py whose time is a loop of small steps: simulations, filters, recurrences, chains of random numbers, as people
write them with lax.scan, fori_loop and while_loop."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

from plain_rows import KEY, normal, uniform, whole


def scanned(step, init, xs=None, length=None):
    return lax.scan(step, init, xs, length)


def twice(new):
    """A step of scan that gives what it carries."""
    return lambda state, x: (lambda made: (made, made))(new(state, x))


def repeated(iterations, step, state):
    return lax.fori_loop(0, iterations, lambda _, state: step(state), state)


def lorenz(s):
    return jnp.stack([10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]])


def euler(s, _=None):
    return s + 0.01 * lorenz(s)


def runge_kutta(s, _=None):
    a = lorenz(s)
    b = lorenz(s + 0.005 * a)
    c = lorenz(s + 0.005 * b)
    return s + 0.01 / 6 * (a + 2 * b + 2 * c + lorenz(s + 0.01 * c))


def pendulum(state, _):
    angle, speed = state
    speed = speed - 0.01 * jnp.sin(angle)
    angle = angle + 0.01 * speed
    return (angle, speed), angle


def epidemic(s, _):
    new, well = 0.3 * s[0] * s[1], 0.1 * s[1]
    return jnp.array([s[0] - new, s[1] + new - well, s[2] + well])


def kalman(zs, a, h):
    def step(state, z):
        x, p = a @ state[0], a @ state[1] @ a.T + 0.01 * jnp.eye(4)
        gain = p @ h.T @ jnp.linalg.inv(h @ p @ h.T + jnp.eye(2))
        x = x + gain @ (z - h @ x)
        return (x, (jnp.eye(4) - gain @ h) @ p), x
    return scanned(step, (jnp.zeros(4), jnp.eye(4)), zs)


def metropolis(key):
    def step(state, key):
        x, likely = state
        one, other = random.split(key)
        y = x + random.normal(one)
        new = -y * y / 2
        is_taken = jnp.log(random.uniform(other)) < new - likely
        return (jnp.where(is_taken, y, x), jnp.where(is_taken, new, likely)), x
    return scanned(step, (jnp.float32(0), jnp.float32(0)), random.split(key, 500))


def drawn(key):
    def step(state, _):
        key, x = state
        key, used = random.split(key)
        return (key, x + random.normal(used, (8,))), x
    return scanned(step, (key, jnp.zeros(8)), length=200)


def conjugate_gradients(a, b):
    def step(state):
        x, r, p, rs, n = state
        ap = a @ p
        by = rs / (p @ ap)
        r = r - by * ap
        new = r @ r
        return x + by * p, r, r + new / rs * p, new, n + 1
    return lax.while_loop(lambda s: (s[3] > 1e-10) & (s[4] < 50), step, (jnp.zeros_like(b), b, b, b @ b, 0))[0]


def halved(bounds):
    low, high = bounds
    middle = (low + high) / 2
    is_low = middle**3 - middle - 2 < 0
    return jnp.where(is_low, middle, low), jnp.where(is_low, high, middle)


def forward(a, b, seen):
    def step(state, o):
        state = (state @ a) * b[:, o]
        return state / state.sum(), jnp.log(state.sum())
    return scanned(step, jnp.ones(4) / 4, seen)[1].sum()


def viterbi(a, b, seen):
    def step(state, o):
        all_of = state[:, None] + a
        return all_of.max(0) + b[:, o], all_of.argmax(0)
    return scanned(step, jnp.zeros(4), seen)


def distance(s, t):
    def row(above, c):
        def cell(left, j):
            return twice(lambda left, j: jnp.minimum(jnp.minimum(above[j + 1], left) + 1, above[j] + (t[j] != c)))(left, j)
        rest = scanned(cell, above[0] + 1, jnp.arange(len(t)))[1]
        return jnp.concatenate([above[:1] + 1, rest]), None
    return scanned(row, jnp.arange(len(t) + 1), s)[0][-1]


def grid(u):
    def step(k, u):
        i, j = k // 40 + 1, k % 40 + 1
        return u.at[i, j].set((u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1]) / 4)
    return lax.fori_loop(0, 1600, step, u)


def rosenbrock(x):
    return (1 - x[0])**2 + 100 * (x[1] - x[0]**2)**2


def recurrent_loss(w, xs):
    return scanned(twice(lambda c, x: jnp.tanh(w * c + x)), jnp.float32(0), xs)[1].sum()


def waves(x, v):
    def step(state, _):
        x, v = state
        v = v + 0.01 * (jnp.roll(x, 1) + jnp.roll(x, -1) - 2 * x)
        return (x + 0.01 * v, v), (v * v).sum()
    return scanned(step, (x, v), length=200)


def bodies(p, v):
    d = p[None] - p[:, None]
    r = (d * d).sum(-1) + 0.1
    v = v + 0.01 * (d / (r * jnp.sqrt(r))[..., None]).sum(1)
    return p + 0.01 * v, v


def ising(key, s):
    def step(s, key):
        around = sum(jnp.roll(s, by, axis) for by in (1, -1) for axis in (0, 1))
        return jnp.where(random.uniform(key, s.shape) < jax.nn.sigmoid(-0.8 * s * around), -s, s), s.sum()
    return scanned(step, s, random.split(key, 20))


ROWS = {  # name: function, arguments
    "Lorenz, 1000 steps": (lambda s: scanned(twice(euler), s, length=1000), normal(3)),
    "Lorenz of 1000 points": (lambda s: repeated(100, euler, s), normal(3, 1000)),
    "Runge-Kutta": (lambda s: scanned(twice(runge_kutta), s, length=500), normal(3)),
    "Runge-Kutta of 1000 points": (lambda s: repeated(50, runge_kutta, s), normal(3, 1000)),
    "pendulum": (lambda a, b: scanned(pendulum, (a, b), length=1000), np.float32(1), np.float32(0)),
    "epidemic": (lambda s: scanned(twice(epidemic), s, length=300), np.array([0.9, 0.1, 0], np.float32)),
    "exponential average of 10000": (lambda x: scanned(twice(lambda c, x: 0.9 * c + 0.1 * x), jnp.float32(0), x), normal(10000)),
    "the same backwards": (lambda x: lax.scan(twice(lambda c, x: 0.9 * c + 0.1 * x), jnp.float32(0), x, reverse=True), normal(10000)),
    "moving mean of 8": (lambda x: scanned(lambda w, v: (jnp.concatenate([w[1:], v[None]]), w.mean()), jnp.zeros(8), x), normal(3000)),
    "rows of 300": (lambda x: scanned(lambda c, x: (jnp.tanh(c + x), c * 2), jnp.zeros(300), x), normal(500, 300)),
    "least path through rows": (lambda x: scanned(twice(lambda c, x: jnp.minimum(c, jnp.roll(c, 1)) + x), x[0], x[1:]), normal(500, 300)),
    "logistic map": (lambda x: repeated(1000, lambda x: 3.7 * x * (1 - x), x), np.float32(0.3)),
    "bisection": (lambda a, b: repeated(40, halved, (a, b)), np.full(1000, 1, np.float32), np.full(1000, 2, np.float32)),
    "sum one by one": (lambda x: lax.fori_loop(0, len(x), lambda i, s: s + x[i] * x[i], jnp.float32(0)), normal(1000)),
    "Fibonacci in an array": (lambda a: lax.fori_loop(2, 500, lambda i, a: a.at[i].set((a[i - 1] + a[i - 2]) % 1000), a), np.ones(500, np.int32)),
    "histogram one by one": (lambda i: lax.fori_loop(0, len(i), lambda k, h: h.at[i[k]].set(h[i[k]] + 1), jnp.zeros(10, int)), whole(0, 10, 3000)),
    "Gauss-Seidel": (grid, normal(42, 42)),
    "softmax of 10 again and again": (lambda x: repeated(3000, lambda x: x + 0.1 * (jax.nn.softmax(x) - 0.1), x), normal(10)),
    "vector over its norm": (lambda x: repeated(3000, lambda x: (lambda y: y / jnp.sqrt((y * y).sum()))(jnp.tanh(x + 0.1)), x), normal(8)),
    "random walk": (lambda k: scanned(twice(lambda x, k: x + random.normal(k, (2,))), jnp.zeros(2), random.split(k, 200)), KEY),
    "Metropolis": (metropolis, KEY),
    "a key that is carried": (drawn, KEY),
    "Ising model": (ising, KEY, np.sign(normal(32, 32))),
    "gradient descent on Rosenbrock": (lambda x: repeated(500, lambda x: x - 1e-3 * jax.grad(rosenbrock)(x), x), np.array([-1, 1], np.float32)),
    "gradient of a recurrence": (jax.grad(recurrent_loss), np.float32(0.5), normal(500)),
    "Kalman filter": (kalman, normal(100, 2), (np.eye(4) + 0.1 * np.eye(4, k=1)).astype(np.float32), np.eye(2, 4, dtype=np.float32)),
    "hidden Markov model": (forward, uniform(4, 4), uniform(4, 6), whole(0, 6, 200)),
    "Viterbi": (viterbi, normal(4, 4), normal(4, 6), whole(0, 6, 200)),
    "edit distance": (distance, whole(0, 4, 40), whole(0, 4, 40)),
    "conjugate gradients": (conjugate_gradients, (np.eye(100) * 10).astype(np.float32) + np.ones((100, 100), np.float32), normal(100)),
    "power iteration": (lambda a, v: repeated(100, lambda v: (lambda w: w / jnp.linalg.norm(w))(a @ v), v), normal(100, 100), normal(100)),
    "least squares by descent": (lambda x, y, w: repeated(100, lambda w: w - 0.01 * x.T @ (x @ w - y) / 256, w), normal(256, 16), normal(256), normal(16)),
    "heat on 1000 points": (lambda u: repeated(100, lambda u: u + 0.1 * (jnp.roll(u, 1) + jnp.roll(u, -1) - 2 * u), u), normal(1000)),
    "waves on 100 points": (waves, normal(100), normal(100)),
    "50 bodies": (lambda p, v: repeated(20, lambda s: bodies(*s), (p, v)), normal(50, 3), normal(50, 3)),
}

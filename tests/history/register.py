"""Is there an order of calls to one register that agrees with their times? (Wing and Gong's search, with the states that were seen kept.)"""

MOST_STATES = 200_000  # a search that needs more is not decided, and that fails


def linearizable(calls, step):
    """`calls`: (begin, end, what). `step(state, what)`: (the state after it,), or None where it cannot be; the first state is None. True
    where an order exists in which each call follows all that ended before it began.

    linearizable([(0, 1, ("write", 1)), (2, 3, ("read", 1))], ...) is true, and with ("read", 0) it is false."""
    calls = sorted(calls, key=lambda call: call[:2])
    everything = (1 << len(calls)) - 1
    to_do, known = [(0, None)], set()
    while to_do:
        done, state = to_do.pop()
        if done == everything:
            return True
        if (done, state) in known:
            continue
        known.add((done, state))
        if len(known) > MOST_STATES:
            raise RuntimeError(f"more than {MOST_STATES} states of {len(calls)} calls to one array")
        left = [i for i in range(len(calls)) if not done >> i & 1]
        earliest_end = min(calls[i][1] for i in left)
        for i in left:
            begin, _, what = calls[i]
            if begin > earliest_end:
                break
            after = step(state, what)
            if after is not None:
                to_do.append((done | 1 << i, after[0]))
    return False

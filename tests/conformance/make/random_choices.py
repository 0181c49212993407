"""Random choices that can be made again, and made smaller: a module is a function of a list of numbers.

    choices = Choices(seed=7)
    text = make(choices)                                   # draws as from random.Random
    smaller(choices.made, lambda c: is_bad(make(c)))       # a shorter list of numbers for which it is still bad

Behind the end of a list that is played back every draw is 0, and 0 is always the plainest choice: the first of a sequence, the lower
bound, "no" of a chance, the order as it is.
"""
import random


class Choices:
    def __init__(self, seed=None, given=None):
        self.source, self.given, self.made = random.Random(seed), given, []

    def draw(self, count):
        """A number from 0 to count - 1."""
        if self.given is None:
            number = self.source.randrange(count)
        else:
            at = len(self.made)
            number = min(self.given[at], count - 1) if at < len(self.given) else 0
        self.made.append(number)
        return number

    # As random.Random has them.

    def random(self):
        return 1 - (self.draw(1000) + 1) / 1000

    def randrange(self, count):
        return self.draw(count)

    def randint(self, low, high):
        return low + self.draw(high - low + 1)

    def choice(self, values):
        return values[self.draw(len(values))]

    def shuffle(self, values):
        for i in range(len(values) - 1):
            j = i + self.draw(len(values) - i)
            values[i], values[j] = values[j], values[i]

    def sample(self, values, count):
        values = list(values)
        self.shuffle(values)
        return values[:count]


def smaller(numbers, is_bad, tries=600):
    """Deletes and lowers numbers while `is_bad(Choices)` stays true; gives the last list that was."""
    best, left = list(numbers), tries

    def try_it(candidate):
        nonlocal best, left
        if left <= 0:
            return False
        left -= 1
        choices = Choices(given=candidate)
        if not is_bad(choices) or (len(choices.made), choices.made) >= (len(best), best):
            return False
        best = choices.made
        return True

    improved = True
    while improved and left > 0:
        improved = False
        for size in (16, 8, 4, 2, 1):
            at = len(best) - size
            while at >= 0 and left > 0:
                if try_it(best[:at] + best[at + size:]):
                    improved = True
                at -= size
        for at in range(len(best)):
            if at < len(best) and best[at] > 0 and (try_it(best[:at] + [0] + best[at + 1:]) or
                                                    try_it(best[:at] + [best[at] // 2] + best[at + 1:])):
                improved = True
    return best

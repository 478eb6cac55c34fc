import numpy as np
import pytest

from moerank.kernels.check_sum import LANES, fold_words, start_lanes

MASK = 2**64 - 1


def folded(words):
    lanes = start_lanes()
    fold_words(lanes, words)
    return lanes.tolist()


def test_equals_the_definition_in_plain_python():
    words = np.random.default_rng(0).integers(0, 2**64, 5 * LANES, dtype=np.uint64)
    expected = [(j * 0x9E3779B97F4A7C15) & MASK for j in range(1, LANES + 1)]
    for k, word in enumerate(words.tolist()):
        x = ((expected[k % LANES] ^ word) * 0x9E3779B97F4A7C15) & MASK
        expected[k % LANES] = x ^ (x >> 32)
    assert folded(words) == expected


def test_pieces_add_up_to_the_whole():
    words = np.arange(6 * LANES, dtype=np.uint64)
    lanes = start_lanes()
    for piece in np.split(words, [LANES, 4 * LANES]):
        fold_words(lanes, piece)
    assert lanes.tolist() == folded(words)


@pytest.mark.parametrize("word", [0, LANES, 3 * LANES - 1])
def test_every_flipped_bit_is_seen(word):
    words = np.zeros(3 * LANES, np.uint64)
    whole = folded(words)
    for bit in range(64):
        words[word] = np.uint64(1 << bit)
        assert folded(words) != whole


def test_swapped_and_repeated_words_are_seen():
    words = np.arange(1, 2 * LANES + 1, dtype=np.uint64)
    sums = {tuple(folded(words))}
    for other in (np.roll(words, 1), np.roll(words, LANES), words[::-1].copy(), np.tile(words, 2)):
        sums.add(tuple(folded(other)))
    assert len(sums) == 5

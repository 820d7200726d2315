"""What the vector stores share: identifiers of documents in indexes that number their points."""

import garlic_ann as garlic
import numpy as np
import pytest
from garlic_ann._documents import Documents

VECTORS = np.eye(3, dtype=np.float32)


@pytest.fixture()
def numbered():
    columns = {"text": ["a", "b", "c"], "metadata": ["{}"] * 3}
    return Documents(garlic.build(VECTORS, [0, 7, 2**63 - 1], columns=columns, metric="cosine"))


@pytest.mark.parametrize("wrong", ["x", "007", "-1", "", "7.0", "\u0667", str(2**63), "9" * 5000, None])
def test_text_that_is_no_number_cannot_be_written(numbered, wrong):
    with pytest.raises(ValueError, match="identifiers of this index are numbers"):
        numbered.put(["new", "other"], VECTORS[:2], ids=["8", wrong])
    assert numbered.index.ids().tolist() == [0, 7, 2**63 - 1]


def test_text_that_is_no_number_is_no_point(numbered):
    assert [found.text for found in numbered.get(["7", "x", "007", str(2**63 - 1)])] == ["b", "c"]
    assert numbered.get(["x"]) == [] and numbered.search([1, 0, 0], 3, ["x"]) == []
    assert [found.id for found in numbered.search([1, 0, 0], 3, ["x", "7"])] == ["7"]
    assert numbered.remove(["x", "007"]) == 0 and numbered.remove([]) == 0 and len(numbered) == 3
    assert numbered.remove(["x", "7"]) == 1 and len(numbered) == 2
    with pytest.raises(ValueError, match="'x'"):
        numbered.vectors(["0", "x"])


def test_numbers_are_written(numbered):
    assert numbered.put(["B", "d"], VECTORS[1:], ids=["7", "12"]) == ["7", "12"]
    assert [found.text for found in numbered.get(["7", "12"])] == ["B", "d"] and len(numbered) == 4


def test_text_is_written_to_an_index_of_text():
    store = Documents(columns=["year"])
    assert store.put(["a", "b"], VECTORS[:2], ids=["x", "007"]) == ["x", "007"]
    assert [found.text for found in store.get(["007", "nobody", "x"])] == ["b", "a"]

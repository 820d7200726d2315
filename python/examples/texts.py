"""Search texts by meaning: tf-idf vectors squeezed into 100 dimensions, under the cosine metric.

    python python/examples/texts.py [FILE ...]      # lines of these files; the docstrings of NumPy without any

Any model that makes vectors of texts can stand in for the first two steps. Needs scikit-learn.
"""

import sys

import garlic_ann as garlic
import numpy as np
from sklearn.decomposition import TruncatedSVD  # type: ignore[import-untyped, unused-ignore]
from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped, unused-ignore]
from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped, unused-ignore]


def texts(files: tuple[str, ...]) -> list[str]:
    """One text a line, or the first paragraphs of docstrings."""
    if files:
        return [line.strip() for file in files for line in open(file, encoding="utf-8") if len(line.split()) > 3]
    found: set[str] = set()
    for part in (np, np.linalg, np.random, np.fft, np.ma, np.polynomial, np.char, np.testing):
        for name in dir(part):
            paragraphs = (getattr(getattr(part, name, None), "__doc__", None) or "").split("\n\n")
            found.update(" ".join(p.split()) for p in paragraphs if len(p.split()) > 5)
    return sorted(found)


def main(*files: str) -> None:
    corpus = texts(files)
    embed = make_pipeline(TfidfVectorizer(stop_words="english", sublinear_tf=True), TruncatedSVD(100, random_state=0))
    vectors = embed.fit_transform(corpus)
    # A text without any known word has no direction.
    known = np.flatnonzero(np.linalg.norm(vectors, axis=1) > 1e-6)
    index = garlic.build(vectors[known], ids=known, metric="cosine", seed=1)
    print(index)
    for question in ("eigenvalues of a symmetric matrix", "draw samples from a distribution", "fast Fourier transform"):
        distances, ids = index.search(embed.transform([question])[0], k=3)
        print(f"\n{question}")
        for distance, id in zip(distances, ids):
            print(f"  {distance:.2f}  {corpus[id][:90]}")


if __name__ == "__main__":
    main(*sys.argv[1:])

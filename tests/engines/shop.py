"""Write the documents, queries and judgments of a small shop: python tests/engines/shop.py [FOLDER].

`products.json` is what Solr indexes, `queries.txt` has a query a line, `judgments.csv` the grades of all documents.
"""

import json
import math
import random
import sys
from pathlib import Path

N_PRODUCTS, N_QUERIES = 400, 15
WORDS = [f"w{number}" for number in range(60)]


def products():
    """Return the documents; a fifth of them has no stock, and the trend of half of them is below 0."""
    draw = random.Random(5)
    documents = []
    for number in range(N_PRODUCTS):
        document = {
            "id": f"p{number}",
            "title": " ".join(draw.choices(WORDS, k=draw.randint(2, 6))),
            "body": " ".join(draw.choices(WORDS, k=draw.randint(10, 40))),
            "price": round(draw.lognormvariate(3, 1), 2),
            "age": draw.random() * 1e4,
            "trend": round(draw.uniform(-1, 1), 2),
        }
        documents.append(document | ({"stock": float(draw.randint(1, 9))} if draw.random() < 0.8 else {}))
    return documents


def queries():
    draw = random.Random(6)
    return [" ".join(draw.sample(WORDS, 2)) for _ in range(N_QUERIES)]


def judgments():
    """Yield query, document and grade: words in the title count most, then price, trend and stock."""
    draw = random.Random(7)
    for query in queries():
        for document in products():
            hidden = 2 * sum(word in document["title"].split() for word in query.split())
            hidden += sum(word in document["body"].split() for word in query.split()) - 0.5 * math.log(
                document["price"]
            )
            hidden += document["trend"] + document.get("stock", 0) / 9 + draw.gauss(0, 0.5)
            yield query, document["id"], min(4, max(0, round(hidden)))


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "products.json").write_text(json.dumps(products()))
    (folder / "queries.txt").write_text("".join(f"{query}\n" for query in queries()))
    rows = [f"{query},{document},{grade}\n" for query, document, grade in judgments()]
    (folder / "judgments.csv").write_text("query,document,grade\n" + "".join(rows))


if __name__ == "__main__":
    write(Path(*sys.argv[1:]))

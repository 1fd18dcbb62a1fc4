"""Functions of functions_files.yaml."""

from arroyo_udf import udf as arroyo

from penstock import udaf, udf, udtf


@arroyo
def discount(price: float, rate: float) -> float:
    return price * rate


@udf(name="slug")
def make_slug(text: str) -> str | None:
    return text.lower().replace(" ", "-")


@udaf
def middle(values: list[int]) -> float | None:
    found = sorted(value for value in values if value is not None)
    return float(found[len(found) // 2]) if found else None


@udaf(returns="STRING")
def joined(names: "list[str]", counts: list[int]):
    return ",".join(
        f"{name}{count}" for name, count in sorted(zip(names, map(str, counts), strict=True))
    )


@udtf(returns="n INT")
class Numbers:
    def eval(self, limit: int):
        return range(limit)

"""What a single cell of a raw table says: a number with its unit, a truth value, a step of a scale, or a range.

The words of several languages are in words.toml. Libraries that guess types leave such cells as text, see
docs/reliability.md.
"""

from __future__ import annotations

import math
import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterable
from functools import cache, partial
from importlib.resources import files
from itertools import pairwise, product

WORDS = tomllib.loads(files("fairclust.tables").joinpath("words.toml").read_text(encoding="utf-8"))
UNKNOWN = {*WORDS["unknown"]}
_TRUTHS = {word: way for way in ("yes", "no") for word in WORDS[way]}
# For every scale, the place of each of its words.
_SCALES = [
    {word.strip(): i for i, place in enumerate(scale.split("<")) for word in place.split("|")}
    for scale in WORDS["scales"]
]


def _singular(word: str) -> str:
    """A word without the ends of plurals, which a singular can lose as well."""
    return re.sub("(?<=.{3})[sne]+$", "", word.lower())


_CURRENCIES: dict[str, str] = {sign: sign for sign in WORDS["currencies"]} | WORDS["currency_signs"]
# Units that are converted into the one that most cells of a column have: their dimension and size.
SIZES = {unit: (kind, size) for kind, units in WORDS["units"].items() for unit, (size, *_) in units.items()}
_SPELLINGS = {
    word: unit
    for units in WORDS["units"].values()
    for unit, (_, *words) in units.items()
    for way in (unit, *words)
    for word in {way, _singular(way)}
}
_TIMES = {word: 10.0 ** int(power) for power, words in WORDS["times"].items() for word in words}
_LISTS = WORDS | {"times": sorted(_TIMES, key=len, reverse=True), "spellings": [*map(re.escape, _SPELLINGS)]}


def _expression(name: str) -> str:
    """One of the words of a list, or the parts of a pattern; {name} in it stands for another one."""
    patterns = WORDS["patterns"]
    text = "".join(patterns[name]) if name in patterns else "|".join(_LISTS[name])
    return f"(?:{re.sub('{([a-z_]+)}', lambda of: _expression(of[1]), text)})"


@cache
def pattern(name: str) -> re.Pattern[str]:
    """A pattern of words.toml."""
    return re.compile(_expression(name))


@cache
def _number_pattern(decimal: str, signs: str) -> re.Pattern[str]:
    """The pattern of a number in which one of some signs may stand between groups of three digits."""
    point, whole = re.escape(decimal), "[0-9]+"
    if signs:
        # No number begins with a zero before the thousands.
        whole += rf"|[1-9][0-9]{{0,2}}(?P<sign>[{re.escape(signs)}])[0-9]{{3}}(?:(?P=sign)[0-9]{{3}})*"
    if "," in signs:  # lakhs and crores
        whole += "|[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}"
    return re.compile(rf"[+-]?(?:(?:{whole})(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?")


def as_number(cell: str, decimal: str = ".", signs: str = "") -> float | None:
    """The finite number that a cell is, with one of some signs between thousands; None if it is none."""
    cell = cell.strip()
    if not _number_pattern(decimal, signs).fullmatch(cell):
        return None
    for sign in signs:
        cell = cell.replace(sign, "")
    number = float(cell.replace(decimal, "."))
    return number if math.isfinite(number) else None


def plain(text: str) -> str:
    """A text with plain digits, blanks, dashes and apostrophes, and fractions as '1/2'."""
    text = text.strip()
    if text.isascii():
        return text
    text = re.sub(r"(?<=\d)(?=[¼½¾⅓⅔⅛⅜⅝⅞])", " ", text)
    text = re.sub("[º˚](?=[CF])", "°", re.sub(r"(?<!\d)10(?=[³⁴-⁹])", "10^", re.sub("(?i)ft²", "sqft", text)))
    # Ordinals, and footnotes.
    text = re.sub(r"(?<=\d)[ºª]$|(?<=[0-9%])[¹²³⁰⁴-⁹]+⁾?(?!\w)", "", text)
    text = unicodedata.normalize("NFKC", text).translate({0x2044: "/", 0x2019: "'"})
    text = "".join(str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in text)
    return re.sub("[\u2010-\u2015\u2212]", "-", text).strip()


def measured(text: str, decimal: str, clock: str = "h") -> tuple[float, str] | None:
    """The number that a cell states, and its unit in one spelling; None if it states none.

    Any sign but that of the decimal point may stand between thousands. Units and currencies stand behind or before it,
    brackets are a minus sign, '<5' is 5, '3/4' is 0.75, '7:30' and '7 h 30' are 7.5 hours, and '1.2M' is 1200000. With
    the `clock` "min", '7:30' are minutes.
    """
    # Excel writes an apostrophe before numbers that are text.
    text = re.sub(r"(?<=\d)\s*[x×*·]\s*10\^(-?\d+)$", r"e\1", plain(text).removeprefix("'"))
    signs = ("." if decimal == "," else ",") + " '_"
    if (number := as_number(text, decimal, signs)) is not None:
        return number, ""
    if (text := pattern("behind").sub("", text)).isdecimal():
        return float(text), ""
    if ":" in text or text[-3:].lower() == "uhr":
        text = pattern("clock").sub(partial(_in_hours, decimal, clock), text)
    score = pattern("score").fullmatch(text)
    if score and (points := float(score[1].replace(",", "."))) <= int(score[2]):
        return points, f"/{score[2]}"
    text = pattern("fraction").sub(partial(_in_decimals, decimal), text) if "/" in text else text
    if pattern("compound").fullmatch(text) and (whole := _in_first_unit(pattern("part").findall(text))):
        return whole
    found = pattern("measured").fullmatch(text)
    if not found or bool(found["open"]) != bool(found["close"]):
        return None
    before, after = found["before"] or "", (found["after"] or "").strip()
    number = as_number(found["number"], decimal, signs)
    # 'Euro 5' is a class of cars.
    if number is None or (before not in ("", "%") and (not is_currency(before) or before[3:].isalpha())):
        return None
    if before and after == "m":
        after = "M"
    times = pattern("times_sign").fullmatch(after) or pattern("times_sign").fullmatch(after.lower())
    # '5 T' are tonnes, and '5 mn' may be minutes.
    is_unit = times and (times[1] == "T" or (times[1] == "mn" and not before + times[2]))
    if times and is_unit and not is_currency(before + times[2]):
        times = None
    # Numbers of many digits with a letter are codes, and '12B' can be a flat.
    if times and (len(times[1]) > 1 or (times[1] in after and abs(number) < 1e6)):
        if times[1] == "B" and not (before or times[2] or number % 1):
            return None
        number, after = number * _TIMES[times[1]], times[2]
    minus = [found["sign"], found["sign2"], found["end"]].count("-") + bool(found["open"])
    return (-number if minus % 2 else number), unit(before + after)


def _in_hours(decimal: str, clock: str, found: re.Match[str]) -> str:
    """A time of the day, or minutes and seconds, as a number of hours."""
    first, second, third = (int(part or 0) for part in found.group(1, 2, 3))
    if found[6]:
        first = first % 12 + 12 * (found[6] in "pP")
    are_minutes = not found[3] and (clock == "min" or found[4] or found[5])
    seconds = (3600 * first + 60 * second + third) / (60 if are_minutes else 1) + float(f"0.{found[4] or 0}")
    return f"{seconds / 3600} h".replace(".", decimal)


def _in_decimals(decimal: str, found: re.Match[str]) -> str:
    """A fraction as a number with decimals."""
    above = as_number(found[2], decimal)
    if above is None:
        return found[0]
    return str(int(found[1] or 0) + above / int(found[3])).replace(".", decimal)


def _in_first_unit(parts: list[tuple[str, str]]) -> tuple[float, str] | None:
    """The sum of numbers in units of one dimension that become smaller, in the first unit; None for other units."""
    names = ["min" if name == "mn" else unit(name) for _, name in parts]
    if any(SIZES.get(name, ("",))[0] == "time" for name in names):
        names[0] = WORDS["time_letters"].get(names[0], names[0])
    for i in range(1, len(names)):
        # '1m83' is a height, and '5 m2' an area.
        if names[i] in ("", "m") and (names[i - 1] != "m" or len(parts[i][0]) == 2):
            names[i] = WORDS["next_unit"].get(names[i - 1], names[i])
    kinds, sizes = zip(*(SIZES.get(name, ("", 0.0)) for name in names), strict=True)
    numbers = [float(number.replace(",", ".")) for number, _ in parts]
    # Those of 4'40" are minutes and seconds.
    are_times = names[:2] == ["ft", "in"] and numbers[1] >= 12
    are_smaller = all(large > small for large, small in pairwise(sizes))
    if len(parts) < 2 or not kinds[0] or len({*kinds}) > 1 or not are_smaller or are_times:
        return None
    return sum(number * size for number, size in zip(numbers, sizes, strict=True)) / sizes[0], names[0]


def unit(text: str) -> str:
    """A unit without what differs from cell to cell: points, the case of words, the plural, and the language."""
    text = " ".join(text.replace(".", " ").split())
    text = text.replace(" ", "") if "/" in text else text
    if text.lower() in _CURRENCIES:
        return _CURRENCIES[text.lower()]
    if text in _SPELLINGS or len(text) < 2:
        return _SPELLINGS.get(text, text)
    singular = _singular(text)
    return _SPELLINGS.get(singular, text if len(text) < 3 else singular)


def usual_units(name: str) -> set[str]:
    """The units that numbers without one may have: years, per cent, and those in the column's name (°C in 'temp_c')."""
    words = re.findall(r"[^\W_]+", re.sub(r"(?<=[a-zà-ÿ])(?=[A-Z])", " ", plain(name)))
    words += [first + sign + second for first, second in pairwise(words) for sign in ("", " ", "/")]
    return {unit(sign + of) for of in words for sign in ("", "°")} | {"year", "%"}


def by_any_sign(text: str) -> tuple[float, str] | None:
    """As `measured`, with a point or a comma as the decimal point."""
    return measured(text, ".") or measured(text, ",")


def in_unit(text: str, found: tuple[float, str] | None, own: str) -> float | None:
    """The measured number of a text in the unit of its column; None if its unit cannot be converted into that one.

    Beside percentages, a part of one without a unit may be a share or a percentage, and is no number. Beside '4 out of
    5', '3/5' are three points.
    """
    if found is None:
        return None
    number, name = found
    is_time = SIZES.get(own, ("",))[0] == "time"
    if name == "mn" and not is_time:
        number, name = number * _TIMES[name], ""
    if own[:1] == "/" and not name and "/" in text:
        return number / SIZES[own][1]
    if name in (own, ""):
        return None if name == "" and own == "%" and 0 < abs(number) < 1 else number
    if is_time:
        months = dict.fromkeys("mM", "month") if own in ("month", "year") else {}
        name = (WORDS["time_letters"] | months).get(name, name)
    (kind, size), (other, of_own) = (SIZES.get(of, (of, 1.0)) for of in (name, own))
    return number * size / of_own if kind == other else None


def is_currency(text: str) -> bool:
    """Whether a text is the sign or the name of a currency."""
    return any(unicodedata.category(sign) == "Sc" for sign in text) or text.strip(". ").lower() in _CURRENCIES


def is_clear(unit: str) -> bool:
    """Whether a unit means the same in all columns."""
    return unit in SIZES or is_currency(unit)


def is_unknown(text: str) -> bool:
    """Whether a cell says that it has no value; why not may stand in brackets behind it."""
    word = text.strip().lower()
    if not word or word in UNKNOWN or re.sub(r"^[(<[]([^()]*)[)>\]]$|\s*\(.*\)$", r"\1", word) in UNKNOWN:
        return True
    # Errors of spreadsheets in all languages, such as '#¡DIV/0!'.
    return bool(re.fullmatch(r"#[\w¡/]+[!?]|#nv", word)) or is_empty_amount(word)


def is_step(word: str) -> bool:
    """Whether a value of a scale that a file states is a step, as 'none' is, and not a word for missing cells."""
    return key(word) in WORDS["zero"] or not is_unknown(word)


def is_empty_amount(word: str) -> bool:
    """Whether a cell is an amount without a number, such as '- €' and '$ -'."""
    return "-" in (word[:1], word[-1:]) and not re.search(r"\d", word) and is_currency(word.strip("- "))


def truth(text: str) -> str:
    """'yes' or 'no' for a truth value in any spelling; another text as it is."""
    return _TRUTHS.get(_truth_word(text), text)


def _truth_word(text: str) -> str:
    return text.strip().lower().removesuffix(".").removesuffix(".0")


def are_truths(words: Collection[str]) -> bool:
    """Whether the words are truth values in more than two spellings, at least one of them without another meaning."""
    ways = [word for word in words if not is_unknown(word)]
    known = {*map(_truth_word, ways)}
    return len(ways) > 2 and {*map(_TRUTHS.get, known)} == {"yes", "no"} and bool(known - {*WORDS["short"]})


def steps(words: Iterable[str]) -> list[str]:
    """The words in their order, if they are at least three steps of a known scale or ranges of numbers; else empty."""
    known, unknown = (sorted(word for word in words if is_unknown(word) == of) for of in (False, True))
    if not known:
        return []
    bare = [[_bare(word) for word in known]]
    # All words may end alike, as 'unlikely', 'fairly likely' and 'very likely' do.
    ends = (bare[0][0][i:] for i in range(len(bare[0][0]) + 1))
    end = next(end for end in ends if all(word.endswith(end) for word in bare[0]))
    if len(end) > 3:
        bare.append([word.removesuffix(end).strip() for word in bare[0]])
    for of_words, scale in product(bare, _SCALES):
        # 'Neither agree nor disagree' and the like are the neutral step, if the scale has one.
        middle = scale.get("neutral", -1)
        at = [scale.get(word, middle if pattern("neutral").match(word) else -1) for word in of_words]
        # Words such as 'none' and '-' say that a cell is missing, unless the scale has them.
        lowest = [word for word in unknown if scale.get(_bare(word), at[0]) not in at]
        at += [scale[_bare(word)] for word in lowest]
        # Of two words for one step, neither is above the other.
        if -1 not in at and len({*of_words, *map(_bare, lowest)}) == len({*at}) > 2:
            return [word for _, word in sorted(zip(at, [*known, *lowest], strict=True))]
    if len(known) < 3:
        return []
    # Stars, signs of a currency, or '+', '++', '+++'.
    if len({*"".join(known)} - {"☆"}) == 1 and not known[0].isalnum():
        return sorted(known, key=lambda word: len(word.rstrip("☆")))
    # Marks such as A-, or '2+', which is better than 2. Of digits, '3+' alone is a limit. Strength is measured from 0,
    # and marks up to 10 grow with the number.
    top = {word: word.rstrip("+-").zfill(2).upper() for word in known}
    heads = "".join(sorted({of[1] for of in top.values()}))
    signs = [word[-1] for word in known if word[-1] in "+-"]
    n_both = len(known) - len({*top.values()})
    are_mixed = n_both > 1 or ("-" in signs and (n_both > 0 or "+" in signs))
    are_marked = bool(signs) if heads.isalpha() else are_mixed
    forms = (r"[0-6][+-]?", r"(?:[1-9]|10)[+-]?", r"[A-Ga-g][+-]?|A\++")
    if any(all(re.fullmatch(form, word) for word in known) for form in forms) and (
        are_marked or heads == "ABCDF" or (len(heads) > 3 and "ABCDEFG".startswith(heads))
    ):
        way = 1 if "0" in heads or max(heads) in "789" else -1
        return sorted(known, key=lambda word: (top[word], way * (word.count("+") - word.count("-"))))
    numbered = [pattern("numbered").match(pattern("stage").sub("", key(word))) for word in known]
    places = [int(of[1]) for of in numbered if of]
    if len({*places}) == len(known) and not all(word.isdecimal() for word in known):
        return [word for _, word in sorted(zip(places, known, strict=True))]
    # '6-12 months' is below '1-2 years'. If some ranges have no unit, all have the same one.
    # If three digits stand behind every point, as in '1.000-1.499' beside '500-999', points separate thousands.
    behind, whole = (re.findall(of, " ".join(known)) for of in (r"\.(\d+)", r"(?<![.\d])\d{3}(?![.\d])"))
    points = ",." if whole and {*map(len, behind)} == {3} else ".,"
    for in_units, decimal in product((True, False), points):
        ranges = [_range(word, decimal, in_units=in_units) for word in known]
        found = sorted((*of, word) for of, word in zip(ranges, known, strict=True) if of)
        wide = [(low, high) for low, high, _ in found if low < high]
        is_closed = len(wide) > 1 and any(-math.inf < low and high < math.inf for low, high in wide)
        if len(found) == len(known) and is_closed and all(low[1] <= high[0] for low, high in pairwise(found)):
            return [word for *_, word in found]
    return []


def key(word: str) -> str:
    """How a step is compared: without case, marks between words, and blanks."""
    return " ".join(word.lower().replace("’", "'").replace("_", " ").split())


def _bare(word: str) -> str:
    """A word of a scale without a number before it, or without 'stage' before a Roman number."""
    bare = re.sub(r"^\(?\d+\s*[-–.:=)]\s*|\s*\(\d+\)$", "", pattern("stage").sub("", key(word)))
    return bare if "/" in bare or bare == "-" else bare.replace("-", " ")


def _range(word: str, decimal: str, *, in_units: bool) -> tuple[float, float] | None:
    """The ends of a range, which may stand in brackets behind its name, as in 'normal (18.5-24.9)'.

    With `in_units`, those of different units can be compared, and a range without a known unit is none.
    """
    text = re.sub(r"^[^\d<>(]+\((.*)\)$", r"\1", plain(word))
    # As R and pandas write them: '(18,25]', and '[18,25[' in French.
    found = pattern("range").fullmatch(re.sub(r"^[\[(\]]\s*([\d.]+), *([\d.]+)[\])\[]$", r"\1 - \2", text))
    if not found:
        return None
    limits = [measured(found[end] or "", decimal) for end in ("low", "high")]
    if limits[0] is None or (found["high"] and limits[1] is None):
        return None
    # The unit of '100-500 m' is that of its last number.
    of = unit(found["of"]) or (limits[1] or limits[0])[1]
    units = [unit(found["of_low"]) or limits[0][1] or of, of or unit(found["of_low"])] if in_units else []
    if not all(name in SIZES for name in units):
        return None
    sizes = [SIZES[name][1] for name in units] or [1.0, 1.0]
    low, high = ((limit or limits[0])[0] * size for limit, size in zip(limits, sizes, strict=True))
    if high < low:
        return None
    above = math.inf if found["above"] or found["over"] else high
    is_end = (found["under"] or found["below"]) and not found["high"]
    return (-math.inf, low) if is_end else (low, above)


def is_named(name: str, words: str) -> bool:
    """Whether a word of a column's name is one that words.toml lists: of codes, years and amounts, the last one.

    A last word that means 'number' does not count.
    """
    own = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-zà-ÿ])(?=[A-Z])", " ", name).lower())
    own = own[:-1] if len(own) > 1 and own[-1] in ("number", "no", "nr", "num", "nummer", "numero") else own
    return any(
        word.startswith(of[:-1]) if of.endswith("*") else word == of
        for word in (own[-1:] if words in ("codes", "years", "amounts") else own)
        for of in WORDS[words]
    )

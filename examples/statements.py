"""Writes questions, and true and false statements, for docs/language-models.md."""

import csv
import random

PLACES = """France: Paris Lyon Marseille Toulouse Bordeaux Nice
Germany: Berlin Hamburg Munich Cologne Leipzig Dresden
Italy: Rome Milan Naples Turin Florence Venice
Spain: Madrid Barcelona Valencia Seville Malaga Bilbao
Poland: Warsaw Gdansk Poznan Lublin Krakow Lodz
Russia: Moscow Kazan Omsk Samara Perm Sochi
Turkey: Istanbul Ankara Izmir Bursa Konya Antalya
Egypt: Cairo Alexandria Giza Luxor Aswan Suez
Nigeria: Lagos Abuja Kano Ibadan Enugu Benin
India: Mumbai Delhi Chennai Pune Jaipur Kolkata
China: Beijing Shanghai Wuhan Shenzhen Chengdu Harbin
Japan: Tokyo Osaka Kyoto Sapporo Nagoya Kobe
Brazil: Brasilia Recife Salvador Manaus Curitiba Fortaleza
Canada: Toronto Montreal Ottawa Calgary Edmonton Winnipeg
Australia: Sydney Melbourne Perth Brisbane Adelaide Darwin
Sweden: Stockholm Malmo Uppsala Gothenburg Lund Linkoping
Pakistan: Karachi Lahore Islamabad Peshawar Multan Quetta
Iran: Tehran Isfahan Shiraz Tabriz Mashhad Qom
Ukraine: Kyiv Kharkiv Odesa Lviv Dnipro Poltava
Morocco: Casablanca Rabat Fez Marrakesh Tangier Agadir"""
SPLITS = "train", "train", "train", "dev", "test", "test"
QUESTION = "Q: Which is larger, {} or {}?\nA:"
PARAPHRASE = "Of {} and {}, the larger number is"
SHOTS = ("fifty-six", "forty-two", "fifty-six"), ("twenty-three", "eighty-one", "eighty-one")
cities, negated, numbers, asked, reworded = [], [], [], [], []

places = [place.split(": ") for place in PLACES.splitlines()]
for i, (country, names) in enumerate(places):
    for j, city in enumerate(names.split()):
        # In every split, each country is as often right as wrong: counting words is no help.
        for name in (country, places[(i + 3 * j + 1) % len(places)][0]):
            rest = city, SPLITS[j]
            cities.append((f"The city of {city} is in {name}.", name == country, *rest))
            negated.append((f"The city of {city} is not in {name}.", name != country, *rest))

tens = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
ones = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
words = [f"{ten}-{one}" for ten in tens for one in ones]
rng = random.Random(0)
for pair in range(120):
    low, high = sorted(rng.sample(range(len(words)), 2))
    for a, b in ((high, low), (low, high)):
        text = f"{words[a].capitalize()} is larger than {words[b]}."
        rest = pair, SPLITS[pair % 6]
        numbers.append((text, a > b, *rest))
        for prompts, ask, end in (asked, QUESTION, "\n\n"), (reworded, PARAPHRASE, ".\n"):
            shots = "".join(f"{ask.format(x, y)} {larger}{end}" for x, y, larger in SHOTS)
            prompts.append((shots + ask.format(words[a], words[b]), words[high], *rest))

statements = {"cities": cities, "negated": negated, "numbers": numbers}
for name, rows in {**statements, "asked": asked, "reworded": reworded}.items():
    columns = ("statement", "true") if name in statements else ("prompt", "larger")
    with open(f"{name}.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([(*columns, "about", "split"), *rows])

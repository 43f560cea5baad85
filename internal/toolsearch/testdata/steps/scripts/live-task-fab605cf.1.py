import re
cards = str(tools.ygocdb.search_cards(query="Sky Striker Ace - Zero"))
print(cards[:1500])
ids = re.findall(r"\d{6,9}", cards)
if ids:
    print(tools.ygocdb.get_card_image(id=ids[0]))

import re
met = tools.met_museum
found = str(met.search_museum_objects(q="Corridor in the Asylum", title=True))
ids = [int(n) for n in re.findall(r"\d{4,}", found)][:2]
for i in ids:
    print(str(met.get_museum_object(objectId=i, returnImage=False))[:1500])

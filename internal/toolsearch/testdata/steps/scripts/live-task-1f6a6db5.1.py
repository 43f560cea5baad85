o = tools.osm_mcp_server
def at(p):
    p = p.get("coordinates", p)
    return float(p.get("latitude", p.get("lat"))), float(p.get("longitude", p.get("lon")))
def place(address):
    r = o.geocode_address(address=address)
    return at(r[0] if isinstance(r, list) else r)
def route(a, b, mode):
    r = o.get_route_directions(from_latitude=a[0], from_longitude=a[1], to_latitude=b[0], to_longitude=b[1], mode=mode)
    return str(r.get("summary", r))[:400]
tower, garden = place("Tokyo Tower"), place("Shinjuku Gyoen, Tokyo")
print("to the garden", route(tower, garden, "car"))
near = o.search_category(category="amenity", min_latitude=garden[0] - 0.006, min_longitude=garden[1] - 0.008,
                         max_latitude=garden[0] + 0.006, max_longitude=garden[1] + 0.008, subcategories=["restaurant"])
places = near.get("results", near) if isinstance(near, dict) else near
japanese = [p for p in places if any(w in str(p).lower() for w in ("japanese", "sushi", "ramen", "soba", "tempura"))][:5]
for p in japanese:
    print(p.get("name"), p.get("tags", p))
if japanese:
    best = at(japanese[0])
    print("to the first", route(garden, best, "foot"), str(o.reverse_geocode(latitude=best[0], longitude=best[1]))[:300])

import json
o = tools.osm_mcp_server
def place(address):
    r = o.geocode_address(address=address)
    p = r[0] if isinstance(r, list) else r
    p = p.get("coordinates", p)
    return float(p.get("latitude", p.get("lat"))), float(p.get("longitude", p.get("lon")))
a = place("University of Chinese Academy of Sciences, Zhongguancun Campus, Beijing")
b = place("University of Chinese Academy of Sciences, Yanqihu Campus, Beijing")
route = o.get_route_directions(from_latitude=a[0], from_longitude=a[1], to_latitude=b[0], to_longitude=b[1], mode="bike")
print(json.dumps(route.get("summary", route))[:600], str(route.get("directions", ""))[:1200])
print(str(o.reverse_geocode(latitude=b[0], longitude=b[1]))[:400])

o = tools.osm_mcp_server
r = o.geocode_address(address="72nd Street and 5th Avenue, Manhattan, New York City")
p = r[0] if isinstance(r, list) else r
p = p.get("coordinates", p)
n = o.analyze_neighborhood(latitude=float(p.get("latitude", p.get("lat"))),
                           longitude=float(p.get("longitude", p.get("lon"))), radius=1000)
print(str(n)[:3500])

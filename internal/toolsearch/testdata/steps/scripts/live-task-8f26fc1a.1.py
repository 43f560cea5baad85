o = tools.osm_mcp_server
def place(address):
    r = o.geocode_address(address=address)
    p = r[0] if isinstance(r, list) else r
    p = p.get("coordinates", p)
    return float(p.get("latitude", p.get("lat"))), float(p.get("longitude", p.get("lon")))
work = place("Jin Mao Tower, 88 Century Avenue, Pudong New Area, Shanghai")
home = place("Nanjing West Road 2-68, Huangpu District, Shanghai")
r = o.analyze_commute(home_latitude=home[0], home_longitude=home[1], work_latitude=work[0], work_longitude=work[1],
                      modes=["car", "foot", "bike"], depart_at="08:00")
for option in r.get("commute_options", [r]):
    print({k: v for k, v in option.items() if k != "directions"} if isinstance(option, dict) else option)

import datetime, re
now = str(tools.time.get_current_time(timezone="Europe/Paris"))
start = datetime.date.fromisoformat(re.search(r"\d{4}-\d\d-\d\d", now).group()) + datetime.timedelta(1)
found = tools.airbnb.airbnb_search(location="Paris, France", checkin=str(start),
                                   checkout=str(start + datetime.timedelta(3)), adults=1)
print(start, str(found)[:3000])

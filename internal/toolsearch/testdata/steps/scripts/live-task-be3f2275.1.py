import datetime, re
now = str(tools.time.get_current_time(timezone="Asia/Shanghai"))
today = datetime.date.fromisoformat(re.search(r"\d{4}-\d\d-\d\d", now).group())
day = today + datetime.timedelta(days=7 - today.weekday() + 2)
codes = str(tools.call("12306-mcp__get-station-code-of-citys", citys="北京|上海"))
start, end = re.findall(r"[A-Z]{3}", codes)[:2]
print(day, tools.call("12306-mcp__get-tickets", date=str(day), fromStation=start, toStation=end,
                      trainFilterFlags="G", sortFlag="startTime", limitedNum=10))

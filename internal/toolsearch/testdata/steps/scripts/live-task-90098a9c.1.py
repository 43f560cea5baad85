s = tools.shadcn_ui_server
found = tools.gather(s.search_components.defer(query="input"), s.search_components.defer(query="button"))
print(str(found)[:500])
for r in tools.gather(s.get_component_details.defer(componentName="input"), s.get_component_details.defer(componentName="button")):
    print(str(r)[:1200])

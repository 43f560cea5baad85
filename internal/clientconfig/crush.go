package clientconfig

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// crushProvider returns the provider for Crush. Crush expands values with a shell, and its timeouts are in seconds. A
// newer form of its configuration is a shell script, which cannot be converted.
func crushProvider() Provider {
	json := &Dialect{parse: configfile.ParseJSON, findRows: rowsAtPaths([]string{"mcp"}), grammar: &rowGrammar{
		title: "Crush", convertText: shellText, fields: commonMembers(
			memberRule{"timeout", convertSecondsTimeout},
			memberRule{"enabled_tools", convertToolsIfAny}, memberRule{"disabled_tools", leaveOut(adviceDenyList)},
			memberRule{"oauth", convertAuth()}, memberRule{"oauth_client_id", copyAuthAs("client_id")},
			memberRule{"oauth_client_secret", copyAuthAs("client_secret")}, memberRule{"oauth_callback_port",
				convertCrushPort},
		),
	}}
	return Provider{Name: "crush", Title: "Crush", Priority: 30, Locations: []FileLocation{
		{Root: ProjectRoot, Path: ".crush.json", Shape: json},
		{Root: ProjectRoot, Path: "crush.json", Shape: json},
		{Root: ConfigRoot, Path: "crush/crush.json", Variable: "CRUSH_GLOBAL_CONFIG",
			FileInVariable: "crush.json", Shape: json},
		{Root: HomeRoot, Path: "AppData/Local/crush/crush.json", OS: "windows", Shape: json},
	}}
}

// convertCrushPort converts the callback port. The value 0 is dropped, because it selects a free port.
func convertCrushPort(c *rowConverter, m configfile.Member) {
	if m.Value.Text != "0" {
		copyAuthAs("callback_port")(c, m)
	}
}

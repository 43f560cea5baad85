package dialect

import "github.com/drawbridge-mcp/drawbridge/config/doc"

// crush has a shell read its values, and counts its timeouts in seconds. Its newer file is a script for a shell, which
// nobody else can read.
func crush() Provider {
	json := &Shape{parse: doc.ParseJSON, rows: at([]string{"mcp"}), tongue: &tongue{
		title: "Crush", text: shell, fields: common(
			field{"timeout", seconds},
			field{"enabled_tools", someTools}, field{"disabled_tools", left(noDenyList)},
			field{"oauth", signIn()}, field{"oauth_client_id", auth("client_id")},
			field{"oauth_client_secret", auth("client_secret")}, field{"oauth_callback_port", crushPort},
		),
	}}
	return Provider{Name: "crush", Title: "Crush", Priority: 30, Places: []Place{
		{Root: Project, Path: ".crush.json", Shape: json},
		{Root: Project, Path: "crush.json", Shape: json},
		{Root: Config, Path: "crush/crush.json", Variable: "CRUSH_GLOBAL_CONFIG", Base: "crush.json", Shape: json},
		{Root: Home, Path: "AppData/Local/crush/crush.json", OS: "windows", Shape: json},
	}}
}

// crushPort carries a port; 0 is a free one.
func crushPort(c *carrier, m doc.Member) {
	if m.Value.Text != "0" {
		auth("callback_port")(c, m)
	}
}

package dialect

import (
	"slices"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// gemini keeps its settings as JSON with comments. An address in httpUrl counts before one in url.
func gemini() Provider {
	json := &Shape{parse: doc.ParseJSON, rows: geminiRows, tongue: &tongue{
		title: "Gemini CLI", text: dollarOrPercent, fields: common(
			field{"url", func(c *carrier, m doc.Member) {
				if other, ok := c.from.Find("httpUrl"); !ok || other.Value.Text == "" {
					same("url")(c, m)
				}
			}},
			field{"httpUrl", func(c *carrier, m doc.Member) {
				same("url")(c, m)
				c.put("type", m.Line, doc.Node{Kind: doc.Text, Line: m.Line, Text: "http"})
			}},
			field{"timeout", raw("timeout")},
			field{"includeTools", tools}, field{"excludeTools", left(noDenyList)},
			field{"oauth", signIn(camelCase(
				field{"enabled", authOff}, field{"authorizationUrl", auth("authorization_url")}, field{"tokenUrl", auth("token_url")},
				field{"registrationUrl", auth("registration_url")}, field{"issuer", auth("issuer")},
				field{"audiences", left(noSignIn)}, field{"tokenParamName", left(noSignIn)})...)}, field{"authProviderType", left(noSignIn)},
			field{"targetAudience", left(noSignIn)}, field{"targetServiceAccount", left(noSignIn)},
			field{"tcp", left("there is no such transport here")},
			field{"trust", ignored}, field{"extension", ignored},
		),
	}}
	// The url above counts before the one that all have.
	slices.Reverse(json.tongue.fields)
	return Provider{Name: "gemini", Title: "Gemini CLI", Priority: 60, Places: []Place{
		{Root: Project, Path: ".gemini/settings.json", Shape: json},
		// The variable stands for the home, not for the directory in it.
		{Root: Home, Path: ".gemini/settings.json", Variable: "GEMINI_CLI_HOME", Base: ".gemini/settings.json", Shape: json},
	}}
}

// geminiRows leaves out nothing: what the settings exclude, or do not allow, is off.
func geminiRows(root doc.Node, _ string) ([]Row, []*doc.Error) {
	rows := held(root, "name", []string{"mcpServers"})
	turnOff(rows, names(root, "mcp", "excluded"))
	if allowed := names(root, "mcp", "allowed"); len(allowed) > 0 {
		for i := range rows {
			rows[i].off = rows[i].off || !allowed[rows[i].Name]
		}
	}
	return rows, nil
}

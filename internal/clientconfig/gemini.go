package clientconfig

import (
	"slices"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// geminiProvider returns the provider for Gemini CLI. In its files, httpUrl takes precedence over url.
func geminiProvider() Provider {
	json := &Dialect{parse: configfile.ParseJSON, findRows: geminiRows, grammar: &rowGrammar{
		title: "Gemini CLI", convertText: dollarOrPercentText, fields: commonMembers(
			memberRule{"url", func(c *rowConverter, m configfile.Member) {
				if other, ok := c.from.Find("httpUrl"); !ok || other.Value.Text == "" {
					copyAs("url")(c, m)
				}
			}},
			memberRule{"httpUrl", func(c *rowConverter, m configfile.Member) {
				copyAs("url")(c, m)
				c.setMember("type", m.Line, configfile.Node{Kind: configfile.Text, Line: m.Line, Text: "http"})
			}},
			memberRule{"timeout", copyVerbatim("timeout")},
			memberRule{"includeTools", convertTools}, memberRule{"excludeTools", leaveOut(adviceDenyList)},
			memberRule{"oauth", convertAuth(camelCaseMembers(
				memberRule{"enabled", convertAuthDisabled}, memberRule{"authorizationUrl",
					copyAuthAs("authorization_url")}, memberRule{"tokenUrl", copyAuthAs("token_url")},
				memberRule{"registrationUrl", copyAuthAs("registration_url")},
				memberRule{"issuer", copyAuthAs("issuer")},
				memberRule{"audiences", leaveOut(adviceSignIn)}, memberRule{"tokenParamName",
					leaveOut(adviceSignIn)})...)}, memberRule{"authProviderType", leaveOut(adviceSignIn)},
			memberRule{"targetAudience", leaveOut(adviceSignIn)}, memberRule{"targetServiceAccount",
				leaveOut(adviceSignIn)},
			memberRule{"tcp", leaveOut("there is no such transport here")},
			memberRule{"trust", ignoreMember}, memberRule{"extension", ignoreMember},
		),
	}}
	// The rule for url above must come before the common rule for url.
	slices.Reverse(json.grammar.fields)
	return Provider{Name: "gemini", Title: "Gemini CLI", Priority: 60, Locations: []FileLocation{
		{Root: ProjectRoot, Path: ".gemini/settings.json", Shape: json},
		// If GEMINI_CLI_HOME is set, the directory .gemini is in that directory, and not in the home directory.
		{Root: HomeRoot, Path: ".gemini/settings.json", Variable: "GEMINI_CLI_HOME",
			FileInVariable: ".gemini/settings.json", Shape: json},
	}}
}

// geminiRows returns all rows. Servers that the settings exclude, or do not allow, are marked as disabled.
func geminiRows(root configfile.Node, _ string) ([]ServerRow, []*configfile.Error) {
	rows := rowsAt(root, "name", []string{"mcpServers"})
	markDisabled(rows, textSetAt(root, "mcp", "excluded"))
	if allowed := textSetAt(root, "mcp", "allowed"); len(allowed) > 0 {
		for i := range rows {
			rows[i].off = rows[i].off || !allowed[rows[i].Name]
		}
	}
	return rows, nil
}

package dialect

import "github.com/drawbridge-mcp/drawbridge/config/doc"

// pisces is the family of programs that keeps its files in .pisces or .omp. Their values mean what ours do. A person's
// own list of what is off counts for that file here: what it says of other files is the family's affair.
func pisces() Provider {
	json := &Shape{parse: doc.ParseJSON, tongue: &tongue{
		title: "pisces", text: ours, lively: true, fields: common(
			field{"timeout", raw("timeout")}, field{"auth", signIn(piscesAuth()...)}, field{"oauth", signIn(piscesAuth()...)},
		),
	}}
	json.rows = func(root doc.Node, _ string) ([]Row, []*doc.Error) {
		rows := held(root, "name", []string{"mcpServers"}, []string{"servers"})
		turnOff(rows, names(root, "disabledServers"))
		return rows, nil
	}
	p := Provider{Name: "pisces", Title: "pisces (.pisces, .omp)", Priority: 85}
	for _, dir := range []string{".pisces/", ".omp/"} {
		p.Places = append(p.Places,
			Place{Root: Project, Path: dir + "mcp.json", Shape: json}, Place{Root: Project, Path: dir + ".mcp.json", Shape: json},
			Place{Root: Home, Path: dir + "agent/mcp.json", Shape: json}, Place{Root: Home, Path: dir + "agent/.mcp.json", Shape: json},
			Place{Root: Home, Path: dir + "mcp.json", Shape: json})
	}
	return p
}

// piscesAuth is what both auth and oauth may say.
func piscesAuth() []field {
	return camelCase(
		field{"type", auth("type")}, field{"credentialId", auth("credential_id")}, field{"tokenUrl", auth("token_url")},
		field{"callbackPort", auth("callback_port")}, field{"callbackPath", auth("callback_path")},
	)
}

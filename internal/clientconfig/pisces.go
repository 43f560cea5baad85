package clientconfig

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// piscesProvider returns the provider for a family of programs with files in .pisces or .omp. Values of env and headers
// have the same form as in Drawbridge's files. The list disabledServers of a file disables only servers in the same
// file.
func piscesProvider() Provider {
	json := &Dialect{parse: configfile.ParseJSON, grammar: &rowGrammar{
		title: "pisces", convertText: nativeText, takesCommands: true, fields: commonMembers(
			memberRule{"timeout", copyVerbatim("timeout")}, memberRule{"auth", convertAuth(piscesAuthMembers()...)},
			memberRule{"oauth", convertAuth(piscesAuthMembers()...)},
		),
	}}
	json.findRows = func(root configfile.Node, _ string) ([]ServerRow, []*configfile.Error) {
		rows := rowsAt(root, "name", []string{"mcpServers"}, []string{"servers"})
		markDisabled(rows, textSetAt(root, "disabledServers"))
		return rows, nil
	}
	p := Provider{Name: "pisces", Title: "pisces (.pisces, .omp)", Priority: 85}
	for _, dir := range []string{".pisces/", ".omp/"} {
		p.Locations = append(p.Locations,
			FileLocation{Root: ProjectRoot, Path: dir + "mcp.json", Shape: json}, FileLocation{Root: ProjectRoot,
				Path: dir + ".mcp.json", Shape: json},
			FileLocation{Root: HomeRoot, Path: dir + "agent/mcp.json", Shape: json}, FileLocation{Root: HomeRoot,
				Path: dir + "agent/.mcp.json", Shape: json},
			FileLocation{Root: HomeRoot, Path: dir + "mcp.json", Shape: json})
	}
	return p
}

// piscesAuthMembers returns the rules for the members of auth and oauth.
func piscesAuthMembers() []memberRule {
	return camelCaseMembers(
		memberRule{"type", copyAuthAs("type")}, memberRule{"credentialId", copyAuthAs("credential_id")},
		memberRule{"tokenUrl", copyAuthAs("token_url")},
		memberRule{"callbackPort", copyAuthAs("callback_port")}, memberRule{"callbackPath",
			copyAuthAs("callback_path")},
	)
}

package clientconfig

import (
	"slices"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// gooseProvider returns the provider for goose. Its files are in YAML; the servers are among its extensions. goose does
// not expand variables. It stores secrets in the keyring of the system; the file contains only the names of the
// secrets.
func gooseProvider() Provider {
	yaml := &Dialect{parse: configfile.ParseYAML, findRows: gooseRows, grammar: &rowGrammar{
		title: "goose", convertText: literalText, fields: commonMembers(
			memberRule{"cmd", convertCommand}, memberRule{"uri", copyAs("url")},
			memberRule{"envs", convertPairs("env")}, memberRule{"env_keys", convertSecretNames},
			memberRule{"timeout", convertSecondsTimeout}, memberRule{"available_tools", convertToolsIfAny},
			memberRule{"bundled", ignoreMember}, memberRule{"display_name", ignoreMember},
			memberRule{"socket", leaveOut("there is no such transport here")},
		),
	}}
	return Provider{Name: "goose", Title: "goose", Priority: 30, Locations: []FileLocation{
		{Root: ConfigRoot, Path: "goose/config.yaml", Variable: "GOOSE_PATH_ROOT",
			FileInVariable: "config/config.yaml", Shape: yaml},
		{Root: AppDataRoot, Path: "Block/goose/config/config.yaml", OS: "windows", Shape: yaml},
	}}
}

// gooseRows returns the rows of the extensions that are MCP servers. goose's own built-in extensions are excluded.
func gooseRows(root configfile.Node, _ string) (rows []ServerRow, _ []*configfile.Error) {
	for _, row := range rowsAt(root, "name", []string{"extensions"}) {
		if inner, ok := row.Value.Find("config"); ok && inner.Value.Kind == configfile.Table {
			row.Value.Members = slices.DeleteFunc(slices.Concat(inner.Value.Members, row.Value.Members),
				func(m configfile.Member) bool { return m.Name == "config" })
		}
		kind, _ := row.Value.Find("type")
		if !slices.Contains([]string{"builtin", "platform", "frontend", "inline_python"}, kind.Value.Text) {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// convertSecretNames converts each name of a secret in goose's keyring to a variable in env. The value is a reference
// to the environment variable of the same name, which must be set for Drawbridge.
func convertSecretNames(c *rowConverter, m configfile.Member) {
	for _, item := range m.Value.Items {
		name, _ := item.TextValue()
		if value, ok := c.variableReference(item.Line, name); ok {
			c.addNote(item.Line, "the value of %s is in goose's keyring; here it is the variable of that name", name)
			c.addPair("env", name, item.Line, value)
		}
	}
}

package dialect

import (
	"slices"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// goose keeps servers among its extensions, as YAML. It puts nothing into texts; secrets are in its keyring, by name.
func goose() Provider {
	yaml := &Shape{parse: doc.ParseYAML, rows: gooseRows, tongue: &tongue{
		title: "goose", text: literal, fields: common(
			field{"cmd", command}, field{"uri", same("url")}, field{"envs", pairs("env")}, field{"env_keys", envKeys},
			field{"timeout", seconds}, field{"available_tools", someTools},
			field{"bundled", ignored}, field{"display_name", ignored}, field{"socket", left("there is no such transport here")},
		),
	}}
	return Provider{Name: "goose", Title: "goose", Priority: 30, Places: []Place{
		{Root: Config, Path: "goose/config.yaml", Variable: "GOOSE_PATH_ROOT", Base: "config/config.yaml", Shape: yaml},
		{Root: AppData, Path: "Block/goose/config/config.yaml", OS: "windows", Shape: yaml},
	}}
}

// gooseRows leaves out what is part of goose itself.
func gooseRows(root doc.Node, _ string) (rows []Row, _ []*doc.Error) {
	for _, row := range held(root, "name", []string{"extensions"}) {
		if inner, ok := row.Value.Find("config"); ok && inner.Value.Kind == doc.Table {
			row.Value.Members = slices.DeleteFunc(slices.Concat(inner.Value.Members, row.Value.Members),
				func(m doc.Member) bool { return m.Name == "config" })
		}
		kind, _ := row.Value.Find("type")
		if !slices.Contains([]string{"builtin", "platform", "frontend", "inline_python"}, kind.Value.Text) {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// envKeys carries the names of secrets. Whoever starts Drawbridge has to set them.
func envKeys(c *carrier, m doc.Member) {
	for _, item := range m.Value.Items {
		name, _ := item.Word()
		if value, ok := c.reference(item.Line, name); ok {
			c.note(item.Line, "the value of %s is in goose's keyring; here it is the variable of that name", name)
			c.pair("env", name, item.Line, value)
		}
	}
}

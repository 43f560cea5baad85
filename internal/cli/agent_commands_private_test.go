package cli

import "testing"

func TestLinesOfMCPThatMayHaveSecrets(t *testing.T) {
	for args, want := range map[string]bool{
		"":                          false,
		"list --all":                false,
		"get add":                   false,
		"add":                       false,
		"add docs":                  false,
		"add --help":                false,
		"remove docs --scope user":  false,
		"auth docs --device":        false,
		"approve docs":              false,
		"add docs --token hunter2":  true,
		"add --token=hunter2":       true,
		"add docs --header K=V":     true,
		"add docs -H 'K: V'":        true,
		"add docs --env K=V -- x":   true,
		"add docs -e K=V -- x":      true,
		"add https://h/mcp?key=v":   true,
		"add docs -- x --api-key v": true,
		"--json add docs --token v": true,
		`"add" docs --token v`:      true,
		`add docs --token "v`:       true,
		"ad docs --token v":         true, // a typing error
		"add-server docs -H=v":      true,
		"auth docs --code v":        true,
		"auth docs --code=v":        true,
	} {
		if got := mcpMayHaveSecrets(args); got != want {
			t.Errorf("/mcp %s: %t", args, got)
		}
	}
}

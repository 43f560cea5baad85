package configfile

import (
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// checkSpots holds the scan to the decoder: whatever the one found in a file without escapes, the other has seen.
func checkSpots(t *testing.T, value any, at *keyPosition) {
	t.Helper()
	if at == nil || at.line == 0 {
		t.Fatalf("no place for %v", value)
	}
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			if name != "" { // the decoder takes one array too few off a value whose key is empty
				checkSpots(t, child, at.childNode(name))
			}
		}
	case []map[string]any:
		for i, item := range v {
			checkSpots(t, item, at.elementAt(i))
		}
	case []any:
		for i, item := range v {
			checkSpots(t, item, at.elementAt(i))
		}
	}
}

func FuzzTOML(f *testing.F) {
	for _, s := range []string{
		"", "[mcp]\nnaming = 'bare'\n", "[[mcp.servers]]\nid = 'a'\ncommand = 'x'\n[mcp.servers.env]\nA = '1'\n",
		"mcp.servers = [{id='a', url='https://h', headers={A=1}}, {id='b'}]\n[serve]\nhttp=':1'\n",
		"a = \"\"\"\n[[x]]\\\"\"\"\"\"\nb = '''''''\n\"q\\\"\".'r' = [1, [2, {c = {}}],]\n",
		"[mcp.servers.a]\ncommand='x'\nx=inf\ny=2000-01-01\n",
		"[[a]]\n[[a.b]]\n[a.b.c]\n[[a]]\n", "mcp = { servers = { a = { command = 'x' } } }",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var values map[string]any
		spots, err := scanTOMLKeys(string(data))
		if err == nil && !strings.Contains(string(data), `\`) && toml.Unmarshal(data, &values) == nil {
			checkSpots(t, values, spots)
		}
		if root, err := ParseTOML(data); err == nil {
			root.AppendJSON(nil, true)
		}
	})
}

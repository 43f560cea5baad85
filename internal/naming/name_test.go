package naming

import (
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

func TestQualifiedName(t *testing.T) {
	long := strings.Repeat("x", 60)
	for _, tt := range []struct {
		server drawbridge.ServerID
		tool   string
		want   drawbridge.CardName
	}{
		{"github", "create_issue", "github__create_issue"},
		{"fs", "read-file", "fs__read-file"},
		{"a", "b__c", "a__b__c"},
		{"a", "_b", "a___b"},
		// What is legal stays, even where it looks like a mark.
		{"a", "b_c0ffee", "a__b_c0ffee"},
		// Everything else ends in a mark.
		{"my.server", "get", "my_server__get_2f7a10"},
		{"fs", "get.item", "fs__get_item_b6fef3"},
		{"fs", "get/item", "fs__get_item_c74bb7"},
		{"wiki", "búsqueda", "wiki__b_squeda_c3be3e"},
		{"a_", "b", "a___b_a00766"},
		{"fs", long, "fs__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_3e7cf8"},
		{"fs", "", "fs___e4f425"},
	} {
		if got := QualifiedName(tt.server, tt.tool); got != tt.want {
			t.Errorf("QualifiedName(%q, %q) = %q, want %q", tt.server, tt.tool, got, tt.want)
		}
	}
}

func TestMCPName(t *testing.T) {
	for _, tt := range []struct {
		server drawbridge.ServerID
		tool   string
		want   drawbridge.CardName
	}{
		{"puppeteer", "puppeteer_screenshot", "mcp_puppeteer_screenshot"},
		{"GitHub", "GitHub_GitHub_issue", "mcp_github_github_issue"},
		{"my-server", "get.item", "mcp_my_server_get_item"},
		{"my.server", "get-item", "mcp_my_server_get_item"},
		{"a_b", "c", "mcp_a_b_c"},
		{"a", "b_c", "mcp_a_b_c"},
		{"fs", "fs", "mcp_fs_fs"},
		// Digits are kept, unlike in the style's first home.
		{"context7", "resolve-library-id", "mcp_context7_resolve_library_id"},
		{"s1", "list", "mcp_s1_list"},
		{"123", "42", "mcp_123_42"},
		{"_", "日本語", "mcp_server_tool"},
		{"server", strings.Repeat("long_", 20), "mcp_server_long_long_long_long_long_lon_c39230"},
	} {
		if got := MCPName(tt.server, tt.tool); got != tt.want {
			t.Errorf("MCPName(%q, %q) = %q, want %q", tt.server, tt.tool, got, tt.want)
		}
	}
}

func TestNamesByStyle(t *testing.T) {
	for _, tt := range []struct {
		style Style
		tool  string
		want  []drawbridge.CardName
	}{
		{Qualified, "get", []drawbridge.CardName{"fs__get"}},
		{"", "get", []drawbridge.CardName{"fs__get"}},
		{MCP, "get", []drawbridge.CardName{"mcp_fs_get", "fs__get"}},
		{Bare, "get", []drawbridge.CardName{"get", "fs__get"}},
		{Bare, "get.item", []drawbridge.CardName{"get.item", "fs__get_item_b6fef3"}},
		{Bare, "get item", []drawbridge.CardName{"fs__get_item_cc929f"}},
	} {
		if diff := cmp.Diff(tt.want, ToolNames(tt.style, "fs", tt.tool)); diff != "" {
			t.Errorf("Names(%q, fs, %q) (-want +got):\n%s", tt.style, tt.tool, diff)
		}
	}
}

// FuzzNames checks the rule of names over pairs: legal, at most 46 characters, and never the same for two pairs by
// themselves. The one exception is a name that a server made to look like another's mark; what becomes of that depends
// on the order of the configuration, and is TestAMadeUpClash's business. It is row FZ-8.
func FuzzNames(f *testing.F) {
	f.Add("a", "b_c", "a_", "b_c")
	f.Add("a", "_b", "a_", "b")
	f.Add("a.", "b", "a-", "b")
	f.Add("github", strings.Repeat("x", 60), "github", strings.Repeat("x", 61))
	f.Fuzz(func(t *testing.T, s1, t1, s2, t2 string) {
		a, b := drawbridge.ServerID(s1), drawbridge.ServerID(s2)
		if a.Validate() != nil || b.Validate() != nil {
			t.Skip()
		}
		for _, style := range []Style{Qualified, MCP} {
			for _, name := range append(ToolNames(style, a, t1), FallbackName(a, t1)) {
				if name == "" || len(name) > maxName || !isLegalName(string(name)) {
					t.Errorf("%s name %q of (%q, %q) is not legal", style, name, a, t1)
				}
			}
		}
		if !slices.Equal(ToolNames(Bare, a, t1), ToolNames(Bare, a, t1)) {
			t.Errorf("names of (%q, %q) differ from one time to the next", a, t1)
		}
		one, other := QualifiedName(a, t1), QualifiedName(b, t2)
		plain := func(s drawbridge.ServerID, t string, n drawbridge.CardName) bool {
			return string(
				n) == joinName(s, t)
		}
		if one == other && (a != b || t1 != t2) && plain(a, t1, one) == plain(b, t2, other) {
			t.Errorf("(%q, %q) and (%q, %q) are both %q", a, t1, b, t2, one)
		}
	})
}

func TestPrefixesBeginEveryName(t *testing.T) {
	for _, server := range []drawbridge.ServerID{"a", "a.", "a_", "A-b", "...",
		drawbridge.ServerID(strings.Repeat("long", 25))} {
		for _, tool := range []string{"x", "_x", "a_x", "get item", "", strings.Repeat("much", 20)} {
			for style, name := range map[Style]drawbridge.CardName{
				Qualified: QualifiedName(server, tool), MCP: MCPName(server, tool), "last": FallbackName(server, tool),
			} {
				begins := func(prefix string) bool { return strings.HasPrefix(string(name), prefix) }
				if !slices.ContainsFunc(NamePrefixes(server), begins) {
					t.Errorf("%s: %q begins with none of %q", style, name, NamePrefixes(server))
				}
			}
		}
	}
}

// TestUC2NamesThatLookAlike has servers name tools in letters that look like others': what callers see has none of
// them, and each of two that look alike has another name.
func TestUC2NamesThatLookAlike(t *testing.T) {
	for _, alike := range [][]string{
		{"create_issue", "сreate_issue", "create_іssue", "ｃreate_issue", "create_issue\u200b", "\u202ecreate_issue",
			"crеate_issue", "create\u2010issue", "ⅽreate_issue", "𝐜reate_issue"},
		{"a/b", "a\u2044b", "a\u2215b", "a\u29f8b", "a\\b"},
	} {
		seen := map[drawbridge.CardName]string{}
		for _, tool := range alike {
			name := QualifiedName("s", tool)
			if strings.ContainsFunc(string(name), func(r rune) bool {
				return r != '_' && r != '-' && (r < '0' || r > 'z' || r > '9' && r < 'A' || r > 'Z' && r < 'a')
			}) {
				t.Errorf("%+q is listed as %+q", tool, name)
			}
			if other, twice := seen[name]; twice {
				t.Errorf("%+q and %+q are both listed as %q", tool, other, name)
			}
			seen[name] = tool
		}
	}
}

package deck

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

func TestTheDirectoryOfASkill(t *testing.T) {
	for uri, want := range map[string]string{
		"skill://git/SKILL.md": "skill://git", "skill://acme/billing/refunds/SKILL.md": "skill://acme/billing/refunds",
		"github://o/r/x/SKILL.md": "github://o/r/x", "skill:///x/SKILL.md": "skill:///x",
		"skill:///SKILL.md": "", "skill://SKILL.md": "", "/SKILL.md": "", "git/SKILL.md": "",
		"skill://git/skill.md": "", "skill://git": "", "": "",
	} {
		if got := skillRoot(uri); got != want || isSkillURI(uri) != (want != "") {
			t.Errorf("the directory of %q is %q, want %q", uri, got, want)
		}
	}
}

// FuzzSkills puts together what two servers list: whatever the URIs are, the list is JSON, no URI of an entry is in it
// twice, and each leads to the server that the entry is from.
func FuzzSkills(f *testing.F) {
	f.Add("skill://git/SKILL.md", "skill://git/SKILL.md", "skill://acme/x/SKILL.md")
	f.Add("skill://acme/SKILL.md", "skill://acme/x/SKILL.md", "skill:///SKILL.md")
	f.Add("skill://drawbridge+b/x/SKILL.md", "x", "://")
	f.Add("a://b//SKILL.md", "a://b//c/SKILL.md", "a://b")
	f.Fuzz(func(t *testing.T, one, two, three string) {
		var catalogues []*serverSkills
		from := map[string]drawbridge.ServerID{}
		for i, uris := range [][]string{{one}, {two, three}} {
			c := newServerSkills().refreshed(newServerSkills(), nil, skillServer{id: drawbridge.ServerID("ab"[i : i+1])},
				time.Time{})
			var entries []string
			for _, uri := range uris {
				entries = append(entries, `{"uri":`+string(rawjson.Quote(uri))+`}`)
			}
			c.addPage(json.RawMessage(`{"skills":[` + strings.Join(entries, ",") + `]}`))
			catalogues = append(catalogues, c)
		}
		s := newSkillSet(newResourceTree(func(func(string, drawbridge.ServerID)) {}), catalogues, naming.Qualified)
		if len(s.items) != len(catalogues[0].skills)+len(catalogues[1].skills) {
			t.Fatalf("%d items of %d and %d skills", len(s.items), len(catalogues[0].skills), len(catalogues[1].skills))
		}
		for i, item := range s.items {
			if err := rawjson.Valid(item); err != nil {
				t.Fatalf("%s: %v", item, err)
			}
			owner := drawbridge.ServerID("a")
			if i >= len(catalogues[0].skills) {
				owner = "b"
			}
			uri := rawjson.GetString(item, "uri")
			if earlier, ok := from[uri]; ok {
				t.Errorf("%q is listed for %s and %s", uri, earlier, owner)
			}
			from[uri] = owner
			if server, _, named := naming.CutServer(uri); named && server != owner {
				t.Errorf("%q is listed for %s", uri, owner)
			} else if leads := s.owner(uri); !named && leads != owner {
				t.Errorf("%q is listed for %s and leads to %q", uri, owner, leads)
			}
		}
	})
}

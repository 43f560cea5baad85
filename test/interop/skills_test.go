//go:build peers

package interop

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A school is a server with one skill of two files, in one generation.
type school struct {
	modern bool
	name   string
	files  map[string]string
}

func newSchool(name, advice string, modern bool) *school {
	return &school{modern, name, map[string]string{
		"skill://git/SKILL.md": "---\nname: git\ndescription: How " + name + " commits.\n---\n" + advice,
		"skill://git/more.md":  "More of " + name + ".",
	}}
}

// entry is the skill as the server lists it.
func (s *school) entry() string {
	var resources []string
	for _, uri := range []string{"skill://git/SKILL.md", "skill://git/more.md"} {
		resources = append(resources, fmt.Sprintf(`{"uri":%q,"digest":"sha256:%x","size":%d}`, uri,
			sha256.Sum256([]byte(s.files[uri])), len(s.files[uri])))
	}
	return fmt.Sprintf(
		`{"uri":"skill://git/SKILL.md","frontmatter":{"name":"git","description":"How %s commits."},"resources":[%s]}`,
		s.name, strings.Join(resources, ","))
}

func (s *school) answer(m mcp.Message) string {
	const capabilities = `"capabilities":{"tools":{},"resources":{},"extensions":{"io.modelcontextprotocol/skills":{}}}`
	uri := rawjson.GetString(m.Params, "uri")
	text, known := s.files[uri]
	switch {
	case m.Method == mcp.MethodDiscover && s.modern:
		return `{"supportedVersions":["2026-07-28"],` + capabilities + `,"ttlMs":0,"cacheScope":"private"}`
	case m.Method == mcp.MethodInitialize && !s.modern:
		return `{"protocolVersion":"2025-11-25",` + capabilities + `,"serverInfo":{"name":"school","version":"1"}}`
	case m.Method == mcp.MethodToolsList:
		return fmt.Sprintf(`{"tools":[{"name":"of_%s","inputSchema":{"type":"object"}}]}`, s.name)
	case m.Method == mcp.MethodResourcesList:
		return `{"resources":[]}`
	case m.Method == mcp.MethodTemplatesList:
		return `{"resourceTemplates":[]}`
	case m.Method == mcp.MethodSkillsList:
		return `{"skills":[` + s.entry() + `],"ttlMs":0,"cacheScope":"private"}`
	case m.Method == mcp.MethodSkillsGet && known:
		return `{"skill":` + s.entry() + `}`
	case m.Method == mcp.MethodResourcesRead && known:
		return fmt.Sprintf(`{"contents":[{"uri":%q,"mimeType":"text/markdown","text":%s}]}`, uri, rawjson.Quote(text))
	}
	return ""
}

func (s *school) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m, err := mcp.ParseMessage(body)
	switch {
	case err != nil:
		http.Error(w, "no", http.StatusMethodNotAllowed)
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		reply := mcp.Message{ID: m.ID, Result: json.RawMessage(s.answer(m))}
		if len(reply.Result) == 0 {
			reply.Result, reply.Error = nil, mcp.NewErrorObject(mcp.CodeMethodNotFound, "no "+m.Method, nil)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(reply.Append(nil))
	}
}

// TestSkills has the Inspector read the skills of two servers of different generations, which share a URI, and check
// each file against its digest.
func TestSkills(t *testing.T) {
	t.Parallel()
	var rows []row
	for _, s := range []*school{newSchool("old", "Commit often.", false), newSchool("new", "Commit whole.", true)} {
		web := httptest.NewServer(s)
		t.Cleanup(web.Close)
		rows = append(rows, row{Name: s.name, URL: web.URL, Type: "http"})
	}
	url := serveHTTP(t, rows)
	listed(t, &httpDoor{url: url, era: modern}, "old__of_old", "new__of_new")
	for _, e := range []string{"legacy", "modern"} {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			options := []string{"--server-url", url, "--transport", "http", "--protocol-era", e}
			outcomes := map[string]string{}
			for line := range bytes.Lines(inspector(t, options, nil, "--method", "skills/list", "--verify",
				"--require-digests")) {
				var skill struct {
					URI, Outcome string
					Files        []json.RawMessage
				}
				decode(t, json.RawMessage(line), &skill)
				outcomes[skill.URI] = fmt.Sprintf("%s, %d files", skill.Outcome, len(skill.Files))
			}
			want := map[string]string{"skill://git/SKILL.md": "verified, 2 files",
				"skill://drawbridge+new/git/SKILL.md": "verified, 2 files"}
			if diff := cmp.Diff(want, outcomes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

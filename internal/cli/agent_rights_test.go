//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/google/go-cmp/cmp"
)

// noteServers are servers that append to a file. Scripts may not call n2, and a rule denies n4.
var noteServers = []string{"n1", "n2", "n3", "n4"}

// A treeModel is a provider whose model makes a random tree of agents and scripts. Each of them calls the tool of each
// server with its own name as the text. It tries call_tool too, which this session does not have.
type treeModel struct {
	mu     sync.Mutex
	random *rand.Rand
	count  int
	// chains are the patterns of an agent or a script and of all above it. want are the calls that all hops permit.
	chains map[string][][]string
	want   map[string][]string
}

func newTreeModel(seed uint64) *treeModel {
	return &treeModel{random: rand.New(rand.NewPCG(seed, seed)), chains: map[string][][]string{"root": nil}, want: map[string][]string{}}
}

// permitted reports whether a tool matches each element.
func permitted(chain [][]string, tool string) bool {
	return !slices.ContainsFunc(chain, func(patterns []string) bool {
		return !slices.ContainsFunc(patterns, func(p string) bool { ok, err := path.Match(p, tool); return ok && err == nil })
	})
}

// below returns a new name below another one, and random patterns for it; nil for none.
func (m *treeModel) below(parent, kind string) (name string, patterns []string) {
	m.count++
	name = fmt.Sprint(kind, m.count)
	if m.random.IntN(4) > 0 {
		all := []string{"n1__*", "n2__note", "*__note", "n[34]__note", "n3__*", "n4__*", "[n", "*"}
		for range 1 + m.random.IntN(3) {
			patterns = append(patterns, all[m.random.IntN(len(all)-1)])
		}
		patterns = slices.DeleteFunc(patterns, func(p string) bool { return p == "[n" }) // refused as not valid
		for _, own := range []string{"task", "run_python", "call_tool"} {
			if m.random.IntN(4) > 0 {
				patterns = append(patterns, own)
			}
		}
		if patterns == nil {
			patterns = []string{"none"}
		}
	}
	m.chains[name] = m.chains[parent]
	if patterns != nil {
		m.chains[name] = append(slices.Clone(m.chains[parent]), patterns)
	}
	return name, patterns
}

// expect notes which calls of an agent or a script may be made.
func (m *treeModel) expect(name string, script bool) {
	for _, server := range noteServers {
		if permitted(m.chains[name], server+"__note") && server != "n4" && (!script || server != "n2") {
			m.want[server] = append(m.want[server], name)
		}
	}
}

// answer returns the calls of an agent: a name and arguments each.
func (m *treeModel) answer(me string) (all [][2]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	add := func(tool string, arguments map[string]any) {
		text, _ := json.Marshal(arguments)
		all = append(all, [2]string{tool, string(text)})
	}
	for _, server := range noteServers {
		add(server+"__note", map[string]any{"text": me})
		add("call_tool", map[string]any{"name": server + "__note", "arguments": map[string]any{"text": me}})
	}
	m.expect(me, false)
	script, patterns := m.below(me, "script")
	arguments := map[string]any{"code": "for n in arguments['all']:\n  for name, more in ((n, {'text': arguments['me']}), ('call_tool', {'name': n, 'arguments': {'text': arguments['me']}}), ('task', {'objective': 'escaped'})):\n" +
		"    try: tools.call(name, **more)\n    except Exception as e: print(e)",
		"arguments": map[string]any{"me": script, "all": []string{"n1__note", "n2__note", "n3__note", "n4__note"}}}
	if patterns != nil {
		arguments["tools"] = patterns
	}
	add("run_python", arguments)
	if permitted(m.chains[me], "run_python") {
		m.expect(script, true)
	}
	for range 2 {
		task, patterns := m.below(me, "agent")
		arguments := map[string]any{"objective": task}
		if patterns != nil {
			arguments["tools"] = patterns
		}
		add("task", arguments)
	}
	return all
}

func (m *treeModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"tiny","object":"model"}]}`)
		return
	}
	var request struct {
		Messages []struct {
			Role    string
			Content string
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	type object = map[string]any
	delta, end := object{"content": "done"}, "stop"
	if last := request.Messages[len(request.Messages)-1]; last.Role == "user" {
		end = "tool_calls"
		var calls []any
		for i, call := range m.answer(strings.Fields(last.Content)[0]) {
			calls = append(calls, object{"index": i, "id": fmt.Sprint("c", i), "type": "function", "function": object{"name": call[0], "arguments": call[1]}})
		}
		delta = object{"tool_calls": calls}
	}
	writeStream(w, end, delta)
}

// TestRightsOnlyNarrow walks random trees of session, sub-agents, scripts and servers, each with random rights. A server
// gets exactly the calls that each hop above permits, and the record of a call has the rights with which it was made.
func TestRightsOnlyNarrow(t *testing.T) {
	cache, err := os.UserCacheDir() // the interpreter is compiled once for all tests
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"own", "hub"} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(place, seed), func(t *testing.T) {
				d := newDesk(t)
				d.env["XDG_CACHE_HOME"] = cache
				model := newTreeModel(seed)
				server := httptest.NewServer(model)
				defer server.Close()
				rows := map[string]map[string]any{}
				for _, name := range noteServers {
					row := map[string]any{}
					if err := json.Unmarshal(mcptest.ServerRow(t, "notes", filepath.Join(d.home, name)), &row); err != nil {
						t.Fatal(err)
					}
					if name == "n2" {
						row["sandbox"] = false
					}
					rows[name] = row
				}
				d.writeJSON(".config/drawbridge/mcp.json", map[string]any{"servers": rows})
				d.write(".config/drawbridge/drawbridge.toml", fmt.Sprintf("[agent]\nmodel = \"fake/tiny\"\n[models.providers.fake]\nkind = \"openai-chat\"\nbase_url = %q\n"+
					"[flow]\nagent = \"off\"\n[[tools.policy.rules]]\neffect = \"deny\"\nservers = [\"n4\"]\n", server.URL+"/v1"))
				if place == "hub" {
					d.startHub()
				}
				d.run(0, "-p", "--permission-mode", "bypass", "root")
				calls := 0
				for _, name := range noteServers {
					text, _ := os.ReadFile(filepath.Join(d.home, name)) // without calls, there is no file
					got := strings.Fields(string(text))
					slices.Sort(got)
					want := append([]string{}, model.want[name]...)
					slices.Sort(want)
					if diff := cmp.Diff(want, append([]string{}, got...)); diff != "" {
						t.Errorf("calls of %s (-want +got):\n%s", name, diff)
					}
					calls += len(got)
				}
				t.Logf("%d agents and scripts made %d calls", model.count, calls)
				d.until("the records of the calls", func() bool { return recordedCalls(t, d) >= calls })
				if seen := recordedCalls(t, d); seen != calls {
					t.Errorf("%d calls are on record, want %d", seen, calls)
				}
			})
		}
	}
}

// recordedCalls returns the number of calls in the audit that were made. The rights in each permit the tool.
func recordedCalls(t *testing.T, d *desk) (seen int) {
	t.Helper()
	out, _ := d.run(0, "audit", "log", "--json", "--limit", "10000")
	var records []struct {
		Card, Server, Outcome string
		Caller                struct{ Rights string }
	}
	if err := json.Unmarshal([]byte(out), &records); err != nil {
		t.Fatalf("%v: %.500s", err, out)
	}
	for _, r := range records {
		if !slices.Contains(noteServers, r.Server) || r.Outcome != "ok" {
			continue
		}
		var rights struct {
			Mode  string
			Tools [][]string
		}
		if err := json.Unmarshal([]byte(r.Caller.Rights), &rights); err != nil || rights.Mode != "bypass" || !permitted(rights.Tools, r.Card) {
			t.Errorf("a call of %s has the rights %q, %v", r.Card, r.Caller.Rights, err)
		}
		seen++
	}
	return seen
}

// TestCallsOfScriptsAreCounted limits the calls of a session: those of a script count, also in a resumed session.
func TestCallsOfScriptsAreCounted(t *testing.T) {
	for _, place := range []string{"own", "hub"} {
		t.Run(place, func(t *testing.T) {
			d, file := noteDesk(t)
			m := agentHome(t, d.home)
			var notes map[string]any
			if err := json.Unmarshal(mcptest.ServerRow(t, "notes", file), &notes); err != nil {
				t.Fatal(err)
			}
			notes["trust"] = "trusted" // so that its results taint no run
			d.writeJSON(".config/drawbridge/mcp.json", map[string]any{"servers": map[string]any{"notes": notes}})
			m.answersWith(func(role, text string) (answer, tool, arguments string) {
				if role == "user" {
					return "", "run_python", `{"code":"for i in range(9):\n  try: tools.notes.note(text=str(i))\n  except Exception as e: print(e)"}`
				}
				return text, "", ""
			})
			if place == "hub" {
				d.startHub()
			}
			out, _ := d.run(0, "-p", "--permission-mode", "bypass", "--max-calls", "4", "write")
			if want := "the limit of calls of tools is reached: 4"; strings.Count(out, want) != 6 {
				t.Errorf("the script says %s", out)
			}
			wantNotes(t, file, "0", "1", "2")
			if out, _ = d.run(0, "-p", "-c", "--permission-mode", "bypass", "--max-calls", "4", "write"); !strings.Contains(out, "the limit of calls of tools is reached: 4") {
				t.Errorf("the resumed session says %s", out)
			}
			wantNotes(t, file, "0", "1", "2")
			// Calls that were made without a limit count too.
			d.run(0, "-p", "--permission-mode", "bypass", "write")
			if out, _ = d.run(0, "-p", "-c", "--permission-mode", "bypass", "--max-calls", "10", "write"); !strings.Contains(out, "the limit of calls of tools is reached: 10") {
				t.Errorf("the resumed session says %s", out)
			}
			wantNotes(t, file, "0", "1", "2", "0", "1", "2", "3", "4", "5", "6", "7", "8")
		})
	}
}

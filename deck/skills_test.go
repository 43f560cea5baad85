package deck

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// schools are servers with skills: what each lists, page by page, and what it has besides.
type schools map[drawbridge.ServerID]*school

type school struct {
	pages  []string // each the members of a result
	hidden []string // the URIs of skills that are not listed
	away   bool
}

const digest = `"sha256:b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"`

// entry is a skill as its server sends it, with two files.
func entry(root string) string {
	name := root[strings.LastIndexByte(root, '/')+1:]
	return fmt.Sprintf(`{"uri":"%[1]s/SKILL.md","frontmatter":{"name":%[2]q,"description":"<d>","n":1.0},"resources":[`+
		`{"uri":"%[1]s/SKILL.md","digest":%[3]s,"size":11},{"size":0,"uri":"%[1]s/a.md","digest":%[3]s}]}`,
		root, name, digest)
}

// page is a page of a list.
func page(entries ...string) string {
	return `"skills":[` + strings.Join(entries, ",") + `],"ttlMs":60000,"cacheScope":"public"`
}

func (s schools) answer(id drawbridge.ServerID, c drawbridge.Call) (drawbridge.Result, error) {
	result := func(text string) (drawbridge.Result, error) {
		return drawbridge.Result{Raw: json.RawMessage(text)}, nil
	}
	uri := rawjson.GetString(c.Params, "uri")
	own := s[id]
	switch {
	case own == nil || own.away:
		return drawbridge.Result{}, &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.Transient,
			Step: string(id) + " is away"}
	case c.Method == mcp.MethodSkillsList:
		n := 0
		_, _ = fmt.Sscan(rawjson.GetString(c.Params, "cursor"), &n)
		if n+1 < len(own.pages) {
			return result(fmt.Sprintf(`{%s,"nextCursor":"%d"}`, own.pages[n], n+1))
		}
		return result(`{` + own.pages[n] + `}`)
	case c.Method == mcp.MethodSkillsGet && own.has(uri):
		return result(`{"skill":` + entry(strings.TrimSuffix(uri, "/SKILL.md")) + `,"ttlMs":5,"cacheScope":"private"}`)
	case c.Method == mcp.MethodSkillsGet:
		return drawbridge.Result{}, &drawbridge.Fault{Kind: drawbridge.BridgeFault,
			Raw: mcp.NewErrorObject(mcp.CodeInvalidParams, "no such skill", nil)}
	case c.Method == mcp.MethodDirectoryRead:
		return result(fmt.Sprintf(
			`{"resources":[{"uri":"%[1]s/a.md","name":"a.md"},{"uri":"%[1]s/sub","mimeType":"inode/directory"}]}`, uri))
	}
	return result(fmt.Sprintf(`{"contents":[{"uri":%q,"text":%q}]}`, uri, id))
}

func (s *school) has(uri string) bool {
	return slices.Contains(s.hidden, uri) || strings.Contains(strings.Join(s.pages, ""), `{"uri":"`+uri+
		`","frontmatter"`)
}

// teaching is a listing of a server with skills, that lists these resources.
func teaching(server string, uris ...string) drawbridge.Listing {
	l := library(server, uris, nil)
	l.Capabilities = json.RawMessage(
		`{"resources":{},"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true}}}`)
	return l
}

func skillsOf(t *testing.T, d *Deck, caller drawbridge.Caller) List {
	t.Helper()
	list, err := d.List(t.Context(), caller, mcp.MethodSkillsList)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// texts returns the items of a list as text.
func texts(items []json.RawMessage) (out []string) {
	for _, item := range items {
		out = append(out, string(item))
	}
	return out
}

// moved is an entry with another root, in every URI.
func moved(entry, from, to string) string { return strings.ReplaceAll(entry, `"`+from, `"`+to) }

var gitSkill, refundsSkill, dailySkill = entry("skill://git"), entry("skill://acme/refunds"),
	entry("github://o/r/daily")

var skillListCases = []struct {
	name    string
	naming  NamingStyle
	a, b    *school
	la, lb  drawbridge.Listing
	want    []string
	clashes []NameClash // of b
}{
	{name: "in configuration order, page by page", a: &school{pages: []string{page(gitSkill), page(),
		page(refundsSkill)}},
		b:    &school{pages: []string{page(dailySkill)}},
		want: []string{gitSkill, refundsSkill, dailySkill}},
	{name: "one URI of two servers", a: &school{pages: []string{page(gitSkill)}},
		b:    &school{pages: []string{page(dailySkill, gitSkill)}},
		want: []string{gitSkill, dailySkill, moved(gitSkill, "skill://git", "skill://drawbridge+b/git")},
		clashes: []NameClash{{Kind: "skill", Name: "skill://git/SKILL.md", Winner: "a",
			Tool: "skill://git/SKILL.md", Listed: "skill://drawbridge+b/git/SKILL.md"}}},
	{name: "another scheme", a: &school{pages: []string{page(dailySkill)}},
		b:    &school{pages: []string{page(dailySkill)}},
		want: []string{dailySkill, moved(dailySkill, "github://o/r", "github://drawbridge+b/o/r")},
		clashes: []NameClash{{Kind: "skill", Name: "github://o/r/daily/SKILL.md", Winner: "a",
			Tool: "github://o/r/daily/SKILL.md", Listed: "github://drawbridge+b/o/r/daily/SKILL.md"}}},
	{name: "a skill in the other's directory", a: &school{pages: []string{page(entry("skill://acme"))}},
		b:    &school{pages: []string{page(refundsSkill)}},
		want: []string{entry("skill://acme"), moved(refundsSkill, "skill://acme", "skill://drawbridge+b/acme")},
		clashes: []NameClash{{Kind: "skill", Name: "skill://acme/refunds/SKILL.md", Winner: "a",
			Tool: "skill://acme/refunds/SKILL.md", Listed: "skill://drawbridge+b/acme/refunds/SKILL.md"}}},
	{name: "a skill around the other's", a: &school{pages: []string{page(refundsSkill)}},
		b:    &school{pages: []string{page(entry("skill://acme"))}},
		want: []string{refundsSkill, moved(entry("skill://acme"), "skill://acme", "skill://drawbridge+b/acme")},
		clashes: []NameClash{{Kind: "skill", Name: "skill://acme/SKILL.md", Winner: "a",
			Tool: "skill://acme/SKILL.md", Listed: "skill://drawbridge+b/acme/SKILL.md"}}},
	{name: "one name of two skills", a: &school{pages: []string{page(entry("skill://x/refunds"))}},
		b:    &school{pages: []string{page(refundsSkill)}},
		want: []string{entry("skill://x/refunds"), refundsSkill}},
	{name: "skills of one server in each other", a: &school{pages: []string{page(entry("skill://acme"), refundsSkill)}},
		b:    &school{pages: []string{page()}},
		want: []string{entry("skill://acme"), refundsSkill}},
	{name: "a file that another server lists", a: &school{pages: []string{page(gitSkill)}},
		b: &school{pages: []string{page()}}, lb: teaching("b", "skill://git/a.md"),
		want: []string{moved(gitSkill, "skill://git", "skill://drawbridge+a/git")}},
	{name: "files that both list", a: &school{pages: []string{page(gitSkill)}},
		b:  &school{pages: []string{page(gitSkill)}},
		la: teaching("a", "skill://git/SKILL.md"), lb: teaching("b", "skill://git/SKILL.md"),
		want: []string{gitSkill, moved(gitSkill, "skill://git", "skill://drawbridge+b/git")},
		clashes: []NameClash{{Kind: "resource", Name: "skill://git/SKILL.md", Winner: "a",
			Tool: "skill://git/SKILL.md", Listed: "skill://drawbridge+b/git/SKILL.md"},
			{Kind: "skill", Name: "skill://git/SKILL.md", Winner: "a", Tool: "skill://git/SKILL.md",
				Listed: "skill://drawbridge+b/git/SKILL.md"}}},
	{name: "one that looks like another server's",
		a:    &school{pages: []string{page(entry("skill://drawbridge+b/git"))}},
		b:    &school{pages: []string{page(gitSkill)}},
		want: []string{moved(entry("skill://drawbridge+b/git"), "skill://", "skill://drawbridge+a/"), gitSkill}},
	{name: "a root that would be everything",
		a:    &school{pages: []string{page(`{"uri":"skill:///SKILL.md"}`, `{"uri":"skill://SKILL.md"}`)}},
		b:    &school{pages: []string{page(gitSkill)}},
		want: []string{`{"uri":"skill:///SKILL.md"}`, `{"uri":"skill://SKILL.md"}`, gitSkill}},
	{name: "dynamic files", a: &school{pages: []string{page(gitSkill)}},
		b:    &school{pages: []string{page(`{"resources":"dynamic","uri":"skill://git/SKILL.md","x":1.0}`)}},
		want: []string{gitSkill, `{"resources":"dynamic","uri":"skill://drawbridge+b/git/SKILL.md","x":1.0}`},
		clashes: []NameClash{{Kind: "skill", Name: "skill://git/SKILL.md", Winner: "a",
			Tool: "skill://git/SKILL.md", Listed: "skill://drawbridge+b/git/SKILL.md"}}},
	{name: "bare names", naming: BareNames, a: &school{pages: []string{page(gitSkill)}},
		b:    &school{pages: []string{page(gitSkill, dailySkill)}},
		want: []string{gitSkill, dailySkill},
		clashes: []NameClash{{Kind: "skill", Name: "skill://git/SKILL.md", Winner: "a",
			Tool: "skill://git/SKILL.md"}}},
}

func TestSkillsOfSeveralServersAreOneList(t *testing.T) {
	for _, tt := range skillListCases {
		t.Run(tt.name, func(t *testing.T) {
			if tt.la.Server == "" {
				tt.la = teaching("a")
			}
			if tt.lb.Server == "" {
				tt.lb = teaching("b")
			}
			d := open(t, &fake{answer: schools{"a": tt.a, "b": tt.b}.answer}, Options{Naming: tt.naming}, tt.la, tt.lb)
			if diff := cmp.Diff(tt.want, texts(skillsOf(t, d, ada).Items)); diff != "" {
				t.Errorf("skills (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.clashes, d.ServerSummaries()[1].Clashes); diff != "" {
				t.Errorf("clashes (-want +got):\n%s", diff)
			}
		})
	}
}

// do sends a request and returns the result as text.
func askSkill(t *testing.T, d *Deck, caller drawbridge.Caller, method, uri string) (string, error) {
	t.Helper()
	result, err := d.Do(t.Context(), drawbridge.Call{Caller: caller, Method: method, Params: objects("uri", uri)[0]})
	return string(result.Raw), err
}

func TestSkillsAndTheirFilesComeFromTheirServer(t *testing.T) {
	up := &fake{answer: schools{
		"a": {pages: []string{page(entry("skill://git"))}, hidden: []string{"skill://secret/SKILL.md"}},
		"b": {pages: []string{page(entry("skill://git"), entry("skill://b"))},
			hidden: []string{"skill://other/SKILL.md"}},
	}.answer}
	c := library("c", []string{"file://c"}, nil)
	d := open(t, up, Options{}, teaching("a"), teaching("b"), c)
	const qualified = "skill://drawbridge+b/git"
	for _, tt := range []struct{ method, uri, server, own, want string }{
		{mcp.MethodSkillsGet, "skill://git/SKILL.md", "a", "skill://git/SKILL.md", `{"skill":` + entry("skill://git") +
			`,"ttlMs":5,"cacheScope":"private"}`},
		{mcp.MethodSkillsGet, qualified + "/SKILL.md", "b", "skill://git/SKILL.md", `{"skill":` +
			moved(entry("skill://git"), "skill://git", qualified) + `,"ttlMs":5,"cacheScope":"private"}`},
		{mcp.MethodResourcesRead, "skill://git/a.md", "a", "skill://git/a.md",
			`{"contents":[{"uri":"skill://git/a.md","text":"a"}]}`},
		{mcp.MethodResourcesRead, qualified + "/a.md", "b", "skill://git/a.md", `{"contents":[{"uri":"` + qualified +
			`/a.md","text":"b"}]}`},
		{mcp.MethodResourcesRead, "skill://b/deep/x", "b", "skill://b/deep/x",
			`{"contents":[{"uri":"skill://b/deep/x","text":"b"}]}`},
		{mcp.MethodDirectoryRead, "skill://b", "b", "skill://b",
			`{"resources":[{"uri":"skill://b/a.md","name":"a.md"},{"uri":"skill://b/sub","mimeType":"inode/directory"}]}`},
		{mcp.MethodDirectoryRead, qualified, "b", "skill://git", `{"resources":[{"uri":"` + qualified +
			`/a.md","name":"a.md"},{"uri":"` + qualified + `/sub","mimeType":"inode/directory"}]}`},
		// Skills that are not listed are asked for, server by server, and from then on known.
		{mcp.MethodSkillsGet, "skill://other/SKILL.md", "b", "skill://other/SKILL.md", `{"skill":` +
			entry("skill://other") + `,"ttlMs":5,"cacheScope":"private"}`},
		{mcp.MethodResourcesRead, "skill://other/a.md", "b", "skill://other/a.md",
			`{"contents":[{"uri":"skill://other/a.md","text":"b"}]}`},
		{mcp.MethodResourcesRead, "skill://secret/SKILL.md", "a", "skill://secret/SKILL.md",
			`{"contents":[{"uri":"skill://secret/SKILL.md","text":"a"}]}`},
	} {
		got, err := askSkill(t, d, ada, tt.method, tt.uri)
		if err != nil {
			t.Errorf("%s %s: %v", tt.method, tt.uri, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.method, tt.uri, diff)
		}
		heard := up.told()
		if want := fmt.Sprintf(`%s %s {"uri":%q}`, tt.server, tt.method, tt.own); heard[len(heard)-1] != want {
			t.Errorf("%s %s: the servers heard %v, want %s last", tt.method, tt.uri, heard, want)
		}
	}
	_, err := askSkill(t, d, ada, mcp.MethodSkillsGet, "skill://none/SKILL.md")
	wantFault(t, err, drawbridge.NotFound, "unknown skill skill://none/SKILL.md")
	_, err = askSkill(t, d, ada, mcp.MethodSkillsGet, "file://c")
	wantFault(t, err, drawbridge.NotFound, "unknown skill file://c")
	_, err = askSkill(t, d, ada, mcp.MethodDirectoryRead, "file://c")
	wantFault(t, err, drawbridge.NotFound, "unknown resource file://c")
	_, err = askSkill(t, d, ada, "skills/activate", "skill://git")
	wantFault(t, err, drawbridge.NotFound, "unknown method skills/activate")
}

func TestSkillsAreForThoseWhoMayKnowTheirServer(t *testing.T) {
	up := &fake{answer: schools{"a": {pages: []string{page(entry("skill://git"))}},
		"b": {pages: []string{page(entry("skill://git"))}}}.answer}
	d := open(t, up, Options{}, teaching("a"), teaching("b"), library("c", nil, nil))
	if diff := cmp.Diff([]string{entry("skill://git")}, texts(skillsOf(t, d, bob).Items)); diff != "" {
		t.Errorf("bob sees (-want +got):\n%s", diff)
	}
	if hint := skillsOf(t, d, bob).CacheHint; hint.Public {
		t.Error("what bob sees of the skills may be shown to everybody")
	}
	if _, err := askSkill(t, d, bob, mcp.MethodResourcesRead, "skill://git/SKILL.md"); err != nil {
		t.Error(err)
	}
	for _, heard := range up.told() {
		if !strings.HasPrefix(heard, "b ") {
			t.Errorf("bob's request goes where he may not: %s", heard)
		}
	}
	stranger := drawbridge.Caller{Kind: drawbridge.External, Principal: "eve", Scopes: []drawbridge.Scope{"mcp:c"}}
	_, err := d.List(t.Context(), stranger, mcp.MethodSkillsList)
	wantFault(t, err, drawbridge.NotFound, "unknown method skills/list")
	_, err = askSkill(t, d, stranger, mcp.MethodSkillsGet, "skill://git/SKILL.md")
	wantFault(t, err, drawbridge.NotFound, "unknown method skills/get")
	wantList(t, up.told())
}

func TestWhatAServerSaidOfItsSkillsIsKept(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	one := &school{pages: []string{page(entry("skill://git"))}}
	up := &fake{answer: schools{"a": one, "b": {pages: []string{strings.Replace(page(), "60000", "120000", 1)}}}.answer}
	d := open(t, up, Options{Now: func() time.Time { return now }}, teaching("a"), teaching("b"))
	first := skillsOf(t, d, ada)
	if want := (drawbridge.CacheHint{TTL: time.Minute, Public: true}); first.CacheHint != want {
		t.Errorf("hint %+v, want %+v", first.CacheHint, want)
	}
	wantList(t, up.told(), "a skills/list ", "b skills/list ")

	now = now.Add(59 * time.Second)
	again := skillsOf(t, d, ada)
	if again.CacheHint.TTL != time.Second || again.Version != first.Version {
		t.Errorf("after 59 seconds: %s are left, version %d after %d", again.CacheHint.TTL,
			again.Version, first.Version)
	}
	wantList(t, up.told()) // no one is asked for as long as both allow
	other := ada
	other.Principal = "eve"
	skillsOf(t, d, other)
	wantList(t, up.told(), "a skills/list ", "b skills/list ") // except for another principal

	now = now.Add(time.Second)
	if list := skillsOf(t, d, ada); list.Version != first.Version {
		t.Error("the same skills, asked for again, are another version")
	}
	wantList(t, up.told(), "a skills/list ")

	one.away = true
	now = now.Add(time.Minute)
	list := skillsOf(t, d, ada)
	if len(list.Items) != 1 || list.CacheHint.TTL != 0 || list.Version != first.Version {
		t.Errorf("of a server that is away: %d skills for %s, want the one it had, for no time", len(list.Items),
			list.CacheHint.TTL)
	}
	wantList(t, up.told(), "a skills/list ", "b skills/list ")
	skillsOf(t, d, ada)
	wantList(t, up.told()) // it is not asked again at once

	one.away, one.pages = false, []string{page(entry("skill://new"))}
	enrol(t, d, teaching("a")) // it is back
	if list := skillsOf(t, d, ada); list.Version == first.Version || !strings.Contains(string(list.Items[0]),
		"skill://new") {
		t.Errorf("after it was listed again: version %d, %s", list.Version, list.Items)
	}

	if err := d.Configure(t.Context(), []Server{{ID: "b", ConfigHash: "row-b"}}); err != nil {
		t.Fatal(err)
	}
	if list := skillsOf(t, d, ada); len(list.Items) != 0 {
		t.Errorf("of a server that is gone there is %s", list.Items)
	}
}

func TestAServerThatNeverAnsweredForItsSkills(t *testing.T) {
	up := &fake{answer: schools{"b": {pages: []string{page(entry("skill://git"))}}}.answer}
	d := open(t, up, Options{}, teaching("a"))
	_, err := d.List(t.Context(), ada, mcp.MethodSkillsList)
	wantFault(t, err, drawbridge.Transient, "a is away")

	d = open(t, up, Options{}, teaching("a"), teaching("b"))
	if list := skillsOf(t, d, ada); len(list.Items) != 1 || list.CacheHint != (drawbridge.CacheHint{}) {
		t.Errorf("beside one that answers: %d skills, hint %+v", len(list.Items), list.CacheHint)
	}
}

func TestListsOfSkillsThatAreNotAsTheyShouldBe(t *testing.T) {
	endless := make([]string, maxSkillPages+5)
	for i := range endless {
		endless[i] = page(entry(fmt.Sprintf("skill://s%d", i)))
	}
	for _, tt := range []struct {
		name    string
		pages   []string
		skills  int
		leftOut []OmittedItem
	}{
		{"no list", []string{`"skills":{}`}, 0, nil},
		{"invalid entries", []string{page(`7`, `{}`, `{"uri":""}`, `{"uri":7}`, `{"uri":"x"}`)}, 1,
			[]OmittedItem{{Kind: "skill", Reason: "it is not a JSON object"}, {Kind: "skill", Reason: "it has no uri"},
				{Kind: "skill", Reason: "it has no uri"}, {Kind: "skill", Reason: "it has no uri"}}},
		{"one URI twice", []string{page(entry("skill://git"), entry("skill://git"))}, 1,
			[]OmittedItem{{Kind: "skill", Name: "skill://git/SKILL.md", Reason: "the server lists its uri twice"}}},
		{"one URI on two pages", []string{page(entry("skill://git")), page(entry("skill://git"))}, 1,
			[]OmittedItem{{Kind: "skill", Name: "skill://git/SKILL.md", Reason: "the server lists its uri twice"}}},
		{"a URI of many parts", []string{page(`{"uri":"` + strings.Repeat("a/", 65) + `"}`)}, 0,
			[]OmittedItem{{Kind: "skill", Name: strings.Repeat("a/", 65), Reason: "its uri is too long"}}},
		{"pages without end", endless, maxSkillPages,
			[]OmittedItem{{Kind: "skill", Reason: "the server's list of skills has no end"}}},
	} {
		d := open(t, &fake{answer: schools{"a": {pages: tt.pages}}.answer}, Options{}, teaching("a"))
		if got := len(skillsOf(t, d, ada).Items); got != tt.skills {
			t.Errorf("%s: %d skills, want %d", tt.name, got, tt.skills)
		}
		if diff := cmp.Diff(tt.leftOut, d.ServerSummaries()[0].Omitted); diff != "" {
			t.Errorf("%s: left out (-want +got):\n%s", tt.name, diff)
		}
	}

	up := &fake{answer: func(drawbridge.ServerID, drawbridge.Call) (drawbridge.Result, error) {
		return drawbridge.Result{Raw: json.RawMessage(`{"skills":[],"nextCursor":"again"}`)}, nil
	}}
	d := open(t, up, Options{}, teaching("a"))
	skillsOf(t, d, ada)
	if heard := up.told(); len(heard) != 2 {
		t.Errorf("a server that returns one cursor over and over is asked %d times", len(heard))
	}

	up.answer = func(drawbridge.ServerID, drawbridge.Call) (drawbridge.Result, error) {
		return drawbridge.Result{Raw: json.RawMessage(`{"resultType":"input_required"}`)}, nil
	}
	d = open(t, up, Options{}, teaching("a"))
	_, err := d.List(t.Context(), ada, mcp.MethodSkillsList)
	wantFault(t, err, drawbridge.ServerError, `list the skills of a: unexpected result type "input_required"`)
}

func TestGuardsDecideOnSkills(t *testing.T) {
	up := &fake{answer: schools{"a": {pages: []string{page(entry("skill://git"))}}}.answer}
	verdict := drawbridge.Verdict{Reason: "no skills today"}
	var methods []string
	d := open(t, up, Options{Guards: []Guard{guard(func(q Question) drawbridge.Verdict {
		methods = append(methods, q.Method+" "+string(q.Spec.Server))
		return verdict
	})}}, teaching("a"), library("c", nil, nil))
	_, err := d.List(t.Context(), ada, mcp.MethodSkillsList)
	wantFault(t, err, drawbridge.PolicyBlocked, "skills/list a: no skills today")
	_, err = askSkill(t, d, ada, mcp.MethodSkillsGet, "skill://drawbridge+a/git/SKILL.md")
	wantFault(t, err, drawbridge.PolicyBlocked, "skills/get skill://drawbridge+a/git/SKILL.md: no skills today")
	_, err = askSkill(t, d, ada, mcp.MethodSkillsGet, "skill://git/SKILL.md")
	wantFault(t, err, drawbridge.NotFound, "unknown skill skill://git/SKILL.md")
	wantList(t, up.told())
	wantList(t, methods, "skills/list a", "skills/get a", "skills/get a")
}

// A lid hides what the server knows by one of these URIs, as rules do: by either of its names.
type lid []string

func (l lid) Decide(_ context.Context, q Question) drawbridge.Verdict {
	if l.Hides(q.Caller, q.Kind, q.Spec) {
		return drawbridge.Verdict{Effect: drawbridge.Deny, Hide: true}
	}
	return drawbridge.Verdict{Effect: drawbridge.Allow}
}

func (l lid) Hides(_ drawbridge.Caller, _ string, spec drawbridge.Spec) bool {
	return slices.Contains(l, spec.Tool) || slices.Contains(l, string(spec.Name))
}

func (l lid) CallerClass(drawbridge.Caller) string { return "" }
func (l lid) HidesAnything() bool                  { return true }

// TestHiddenFilesAreInNoSkillAndNoDirectory hides a file of a skill of two servers, and a directory of one of them.
func TestHiddenFilesAreInNoSkillAndNoDirectory(t *testing.T) {
	up := &fake{answer: schools{"a": {pages: []string{page(entry("skill://git"))}},
		"b": {pages: []string{page(entry("skill://git"), entry("skill://x"))}}}.answer}
	d := open(t, up, Options{Guards: []Guard{lid{"skill://git/a.md", "skill://x/sub", "skill://x/SKILL.md"}}},
		teaching("a"), teaching("b"))
	without := strings.Replace(entry("skill://git"), `,{"size":0,"uri":"skill://git/a.md","digest":`+digest+`}`, "", 1)
	wantList(t, texts(skillsOf(t, d, ada).Items), without, moved(without, "skill://git", "skill://drawbridge+b/git"))
	for _, root := range []string{"skill://git", "skill://drawbridge+b/git"} {
		got, err := askSkill(t, d, ada, mcp.MethodSkillsGet, root+"/SKILL.md")
		if want := `{"skill":` + moved(without, "skill://git", root) +
			`,"ttlMs":5,"cacheScope":"private"}`; err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", root, got, err, want)
		}
		got, err = askSkill(t, d, ada, mcp.MethodDirectoryRead, root)
		if want := `{"resources":[{"uri":"` + root + `/sub","mimeType":"inode/directory"}]}`; err != nil ||
			got != want {
			t.Errorf("%s: %s, %v, want %s", root, got, err, want)
		}
	}
	got, err := askSkill(t, d, ada, mcp.MethodDirectoryRead, "skill://x")
	if want := `{"resources":[{"uri":"skill://x/a.md","name":"a.md"}]}`; err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

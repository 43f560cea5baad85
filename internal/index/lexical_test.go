package index_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/google/go-cmp/cmp"
)

func tool(server, name, description string, parameters ...string) index.Document {
	properties := map[string]any{}
	for _, p := range parameters {
		properties[p] = map[string]any{"type": "string"}
	}
	schema, _ := json.Marshal(map[string]any{"type": "object", "properties": properties})
	return index.Document{ID: server + "__" + name, Server: server, Name: name,
		Description: description, Schema: schema}
}

func desk() []index.Document {
	return []index.Document{
		tool("github", "list_pull_requests", "List the pull requests of a repository", "owner", "repo", "state"),
		tool("github", "createIssue", "Open a new issue in a repository", "owner", "repo", "title", "body"),
		tool("github", "get_file_contents", "Read a file or directory of a repository", "owner", "repo", "path"),
		tool("fs", "read_file", "Read the complete contents of a file from the disk", "path"),
		tool("fs", "list_directory", "List what is in a directory", "path"),
		tool("mail", "send", "Send an e-mail to one or more people", "to", "subject", "body"),
		tool("bing", "search", "使用必应搜索指定的关键词，并返回搜索结果列表", "query"),
		tool("weather", "forecast", "Weather of the next days at a place", "city", "days"),
	}
}

func ids(hits []index.Hit) []string {
	var out []string
	for _, h := range hits {
		out = append(out, h.ID)
	}
	return out
}

func TestSearch(t *testing.T) {
	x := index.NewLexicalIndex()
	x.Update(desk(), nil)
	for _, tt := range []struct {
		question string
		first    []string
	}{
		{"list pull requests", []string{"github__list_pull_requests"}},
		{"listPullRequests", []string{"github__list_pull_requests"}},
		{"Which PULL REQUESTS are listed?", []string{"github__list_pull_requests"}},
		{"please open an issue about the crash", []string{"github__createIssue"}},
		{"read a file from disk", []string{"fs__read_file", "github__get_file_contents"}},
		{"github repository file", []string{"github__get_file_contents"}},
		{"搜索关键词", []string{"bing__search"}},
		{"tell me the weather forecast for the city of Paris, and then send an e-mail to people in the office",
			[]string{"mail__send", "weather__forecast"}},
		{"subject", []string{"mail__send"}},
		{"direct", []string{"fs__list_directory", "github__get_file_contents"}}, // "directory" begins with it
		{"git hub pullrequests", []string{"github__list_pull_requests"}},
		{"weathercock", []string{"weather__forecast"}},
		// nothing answers the first part
		{"glorious unheard nonsense, and read the file from the disk", []string{"fs__read_file"}},
		{"quantum", nil},
		{"", nil},
	} {
		got := ids(x.Search(tt.question, len(tt.first)))
		slices.Sort(got)
		want := slices.Sorted(slices.Values(tt.first))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", tt.question, diff)
		}
	}
}

func TestScoresAreOfTheBest(t *testing.T) {
	x := index.NewLexicalIndex()
	x.Update(desk(), nil)
	hits := x.Search("list the files in a directory and read them", 20)
	if len(hits) < 3 || hits[0].Score != 1 {
		t.Fatal(hits)
	}
	if !slices.IsSortedFunc(hits, func(a, b index.Hit) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	}) {
		t.Error(hits)
	}
	for _, most := range []int{0, 1, 2} {
		if diff := cmp.Diff(hits[:most], x.Search("list the files in a directory and read them", most)); most > 0 &&
			diff != "" {
			t.Errorf("%d: %s", most, diff)
		}
	}
}

// TestWhatWasThereBeforeDoesNotCount builds the same deck in many ways, through documents that go again and change:
// the same questions have the same answers, to the last bit of the scores.
func TestWhatWasThereBeforeDoesNotCount(t *testing.T) {
	want := index.NewLexicalIndex()
	want.Update(desk(), nil)
	questions := []string{"list pull requests", "read a file and send it by mail to all people",
		"repository path", "directory"}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		x := index.NewLexicalIndex()
		docs := desk()
		for i := range 20 {
			x.Update([]index.Document{tool("hidden", fmt.Sprint("list_file", i),
				"list pull requests of a repository directory", "path")}, nil)
			if i%5 == 0 {
				x.Search("list", 3)
			}
		}
		r.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
		for i, d := range docs {
			before := d
			before.Description = "something about a repository"
			x.Update([]index.Document{before}, nil)
			x.Update([]index.Document{d}, nil)
			x.Update(nil, []string{fmt.Sprint("hidden__list_file", 2*i), fmt.Sprint("hidden__list_file",
				2*i+1), "nobody"})
		}
		for i := range 20 {
			x.Update(nil, []string{fmt.Sprint("hidden__list_file", i)})
		}
		if x.Len() != want.Len() {
			t.Fatalf("%d documents, want %d", x.Len(), want.Len())
		}
		for _, q := range questions {
			if diff := cmp.Diff(want.Search(q, 20), x.Search(q, 20)); diff != "" {
				t.Fatalf("seed %d, %q: %s", seed, q, diff)
			}
		}
	}
}

// TestAChangeCountsAtOnce changes one tool of many, by which hardly any average changes: the answers are those of an
// index that never had another, whatever was asked before.
func TestAChangeCountsAtOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	said := func(n int) (text string) {
		for range n {
			text += fmt.Sprint(" ", []string{"list", "lists", "key", "vault", "keyvault", "repo", "repository", "file",
				"filing", "send"}[r.IntN(10)], r.IntN(30))
		}
		return text
	}
	docs := make([]index.Document, 300)
	for i := range docs {
		docs[i] = tool("s", fmt.Sprint("tool", i), said(12), said(1))
	}
	x := index.NewLexicalIndex()
	x.Update(docs, nil)
	for round := range 20 {
		unheard := "gadget" + string(rune('a'+round))
		question := said(4) + " " + unheard
		x.Search(question, 20)
		i := r.IntN(len(docs))
		docs[i].Description = said(12) + " " + unheard
		x.Update(docs[i:i+1], nil)
		anew := index.NewLexicalIndex()
		anew.Update(docs, nil)
		if diff := cmp.Diff(anew.Search(question, 20), x.Search(question, 20)); diff != "" {
			t.Fatalf("%q: %s", question, diff)
		}
	}
}

// TestSearchWhileItChanges is for the race detector: a document that nobody touches is found all the while.
func TestSearchWhileItChanges(t *testing.T) {
	x := index.NewLexicalIndex()
	x.Update(desk(), nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			x.Update([]index.Document{tool("new", fmt.Sprint("tool", i%7), "comes and goes")}, nil)
			x.Update(nil, []string{fmt.Sprint("new__tool", (i+3)%7)})
		}
	}()
	for range 200 {
		if got := ids(x.Search("weather forecast", 1)); !slices.Equal(got, []string{"weather__forecast"}) {
			t.Fatal(got)
		}
	}
	<-done
}

// FuzzDocument takes in and out whatever a server says: nothing of it is left.
func FuzzDocument(f *testing.F) {
	f.Add("name", "description", `{"properties":{"a":{"enum":["x",1],"items":{"description":"d"}}}}`, "name")
	f.Add("搜索", "\xff", `{"properties":{"a":{"properties":{"a":{"properties":{"a":{"properties":{"a":{}}}}}}}}}`, "搜索")
	f.Add("", "", `[`, "")
	f.Fuzz(func(t *testing.T, name, description, schema, question string) {
		x := index.NewLexicalIndex()
		x.Update(desk(), nil)
		want := x.Search(question, 10)
		x.Update([]index.Document{{ID: "fuzz", Name: name, Description: description, Schema: json.RawMessage(schema)}},
			nil)
		x.Search(question, 10)
		x.Update(nil, []string{"fuzz"})
		if diff := cmp.Diff(want, x.Search(question, 10)); diff != "" {
			t.Error(diff)
		}
	})
}

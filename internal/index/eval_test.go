package index

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestMeasure(t *testing.T) {
	ranked := strings.Fields("a b c d e f g h i j k l m n o p q r s t u")
	queries := []EvalQuery{
		{ID: "first", Kind: "one", Gold: []string{"a"}},
		{ID: "group", Kind: "many", Gold: []string{"x"}, Groups: [][]string{{"x", "b"}, {"c", "a"}}},
		{ID: "late", Kind: "many", Gold: []string{"f", "k", "u"}},
		{ID: "lost", Kind: "one", Gold: []string{"a"}},
		{ID: "unknown", Kind: "one"},
	}
	rows := []Ranking{{ID: "first", Ranked: ranked}, {ID: "group", Ranked: ranked},
		{ID: "late", Ranked: append([]string{"a", "a"}, ranked...)}}
	sixth := 1 / math.Log2(7) / (1 + 1/math.Log2(3) + 0.5)
	want := []Score{
		{"", 4, 2.0 / 4, (2 + 2.0/3) / 4, (2 + sixth) / 4, 2.0 / 4, 2.0 / 4},
		{"many", 2, 1.0 / 2, (1 + 2.0/3) / 2, (1 + sixth) / 2, 1.0 / 2, 1.0 / 2},
		{"one", 2, 1.0 / 2, 1.0 / 2, 1.0 / 2, 1.0 / 2, 1.0 / 2},
	}
	got := ScoreRankings(queries, rows)
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Score{"", 4, 0.5, (1 + 2.0/3 + 1) / 4, (2 + sixth) / 4, 0.5, 0.5}, MeanScore(got[1:]),
		cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Error(diff)
	}
	if got := ScoreRankings([]EvalQuery{{ID: "a", Query: "b"}}, nil); got != nil {
		t.Error(got)
	}
}

func TestLatency(t *testing.T) {
	var rows []Ranking
	for i := range 100 {
		rows = append(rows, Ranking{Millis: float64((i * 37) % 100)})
	}
	if p50, p95 := LatencyPercentiles(rows); p50 != 50 || p95 != 95 {
		t.Error(p50, p95)
	}
	if p50, p95 := LatencyPercentiles(nil); p50 != 0 || p95 != 0 {
		t.Error(p50, p95)
	}
}

func TestEveryRowHasEnough(t *testing.T) {
	var tools []Document
	for _, id := range strings.Fields("e d c b a") {
		tools = append(tools, Document{ID: id, Name: id})
	}
	rows := []Ranking{{ID: "some", Ranked: []string{"d", "b"}}, {ID: "none"}}
	FillRankings(rows, tools, 4)
	want := []Ranking{{ID: "some", Ranked: []string{"d", "b", "a", "c"}},
		{ID: "none", Ranked: []string{"a", "b", "c", "d"}}}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
}

// TestArmsFind asks each arm: a needed tool is the first.
func TestArmsFind(t *testing.T) {
	tools := []Document{{ID: "1", Name: "send_mail"}, {ID: "2", Name: "read_file",
		Description: "Read a file from the disk"}, {ID: "3", Name: "add"}}
	for _, arm := range Arms {
		rank, err := NewRankFunc(arm, tools)
		if err != nil {
			t.Fatal(err)
		}
		if got := rank(context.Background(), "read files", 1); !cmp.Equal(got, []string{"2"}) {
			t.Errorf("%s: %v", arm, got)
		}
	}
}

// FuzzRows reads whatever stands in a file: rows, or an error that names the file.
func FuzzRows(f *testing.F) {
	f.Add([]byte(`{"id":"a","name":"b","query":"c","groups":[["d"]]}` + "\n\n" + `{"id":"e","query":"f","gold":null}`))
	f.Add([]byte("{}\n[]"))
	f.Add([]byte(`{"id":"a","query":"b","groups":[[]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		queries, err := ReadEvalQueries("file", bytes.NewReader(data))
		if (err == nil) != (len(queries) > 0) || err != nil && !strings.HasPrefix(err.Error(), "file:") {
			t.Fatal(len(queries), err)
		}
		ScoreRankings(queries, nil)
		tools, err := ReadEvalTools("file", bytes.NewReader(data))
		if (err == nil) != (len(tools) > 0) || err != nil && !strings.HasPrefix(err.Error(), "file:") {
			t.Fatal(len(tools), err)
		}
	})
}

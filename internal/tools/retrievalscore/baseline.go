package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
	_ "modernc.org/sqlite"
)

// word matches a sequence of letters, digits and underscores: the simplest definition of a word.
var word = regexp.MustCompile(`\w+`)

// plain returns a function that ranks tools with simple BM25 (k1 1.5, b 0.75) over names and descriptions. It neither
// stems words nor splits identifiers.
func plain(tools []index.Document) index.RankFunc {
	type posting struct{ doc, times int }
	postings := map[string][]posting{}
	lengths := make([]float64, len(tools))
	average := 0.0
	for i, t := range tools {
		count := map[string]int{}
		all := word.FindAllString(strings.ToLower(t.Name+" "+t.Description), -1)
		for _, w := range all {
			count[w]++
		}
		for w, n := range count {
			postings[w] = append(postings[w], posting{i, n})
		}
		lengths[i] = float64(len(all))
		average += lengths[i] / float64(len(tools))
	}
	return func(_ context.Context, question string, most int) []string {
		scores := map[int]float64{}
		asked := word.FindAllString(strings.ToLower(question), -1)
		slices.Sort(asked)
		for _, w := range slices.Compact(asked) {
			df := float64(len(postings[w]))
			rare := math.Log(1 + (float64(len(tools))-df+0.5)/(df+0.5))
			for _, p := range postings[w] {
				tf := float64(p.times)
				scores[p.doc] += rare * tf * 2.5 / (tf + 1.5*(0.25+0.75*lengths[p.doc]/average))
			}
		}
		found := slices.SortedFunc(maps.Keys(scores), func(a, b int) int {
			return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(tools[a].ID, tools[b].ID))
		})
		ids := make([]string, 0, most)
		for _, i := range found[:min(most, len(found))] {
			ids = append(ids, tools[i].ID)
		}
		return ids
	}
}

// fts returns a function that ranks tools with SQLite's FTS5 and the Porter stemmer. FTS5 indexes split names,
// servers, titles, descriptions, and the names and descriptions of parameters. The weights of these fields are
// approximately those of package index. Stop words of queries are omitted. The second result closes the database; the
// caller must call it.
func fts(tools []index.Document) (index.RankFunc, func() error, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(1) // each connection to :memory: has its own database
	if err := fill(db, tools); err != nil {
		db.Close()
		return nil, nil, fmt.Errorf("fill FTS5: %w", err)
	}
	stops := index.NewStopWords()
	return func(ctx context.Context, question string, most int) []string {
		all := stops.Parse(question, 3).ContentWords(index.WholeRequest, 3)
		slices.Sort(all)
		query := `"` + strings.Join(slices.Compact(all), `" OR "`) + `"`
		rows, err := db.QueryContext(ctx,
			"SELECT id FROM t WHERE t MATCH ? ORDER BY bm25(t, 0, 2.5, 1.2, 0.7, 0.7, 0.4), id LIMIT ?", query, most)
		if err != nil {
			return nil
		}
		defer rows.Close()
		var ids []string
		for rows.Next() {
			var id string
			if rows.Scan(&id) == nil {
				ids = append(ids, id)
			}
		}
		return ids
	}, db.Close, nil
}

func fill(db *sql.DB, tools []index.Document) error {
	if _, err := db.Exec(
		"CREATE VIRTUAL TABLE t USING fts5(id UNINDEXED, name, server, description, parameters, hints, tokenize='porter unicode61')"); err != nil {
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, t := range tools {
		var parameters, hints []string
		describe(t.Schema, &parameters, &hints)
		if _, err := tx.Exec("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", t.ID, split(t.Name), split(t.Server), t.Title+
			"\n"+t.Description, split(strings.Join(parameters, " ")), strings.Join(hints, "\n")); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func split(name string) string { return strings.Join(index.SplitWords(name), " ") }

// describe appends the names of a schema's properties to parameters, and their descriptions to hints. It includes the
// properties of nested objects and arrays.
func describe(schema json.RawMessage, parameters, hints *[]string) {
	var s struct {
		Properties map[string]json.RawMessage
		Items      json.RawMessage
	}
	if json.Unmarshal(schema, &s) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		*parameters = append(*parameters, name)
		var p struct{ Description string }
		if json.Unmarshal(s.Properties[name], &p) == nil {
			*hints = append(*hints, p.Description)
		}
		describe(s.Properties[name], parameters, hints)
	}
	describe(s.Items, parameters, hints)
}

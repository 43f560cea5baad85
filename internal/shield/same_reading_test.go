package shield_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// compared returns what a change of one member of a definition comes to.
func compared(t *testing.T, member string, before, after any) shield.Comparison {
	t.Helper()
	definition := func(v any) json.RawMessage {
		out, err := json.Marshal(map[string]any{"name": "clean_up", member: v})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	c, err := newShield(t).CompareDefinitions(definition(before), definition(after))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCosmetic: what neither words nor meaning hang on asks no one.
func TestCosmetic(t *testing.T) {
	for _, tt := range []struct{ name, before, after string }{
		{"white space", "Puts a  file.\n\n  Then reads it.", "Puts a file. Then reads it."},
		{"a full stop at the end", "Puts a file", "Puts a file."},
		{"a full stop after a number", "Keeps at most 5", "Keeps at most 5."},
		{"a full stop after an ending", "Reads .html, .csv", "Reads .html, .csv."},
		{"a full stop of ideographs", "不能删除文件", "不能删除文件。"},
		{"blanks between scripts", "使用API读取3个文件", "使用 API 读取 3 个文件"},
		{"case where sentences begin", "puts a file. then reads it.", "Puts a file. Then reads it."},
		{"case where a line begins", "Options:\n- get it\n- put it", "Options:\n- Get it\n- Put it"},
		{"quotes", "Puts \"it\", don't ask", "Puts “it”, don’t ask"},
		{"dashes", "Puts it - or not -- in 2-3 days", "Puts it — or not – in 2–3 days"},
		{"dots of an ellipsis", "Puts it...", "Puts it…"},
		{"bullets", "Options:\n- get\n- put", "Options:\n* get\n• put"},
		{"bullets that are new", "Options:\nget\nput", "Options:\n  - get\n  - put"},
		{"lines with bullets become one", "Options:\n* get\n* put", "Options: * get * put"},
		{"backticks", "Reads path of README.md", "Reads `path` of `README.md`"},
		{"bold", "Note: the path is required.", "**Note:** the **path** **is** required."},
		{"bold names", "Reads README.md and the path.", "Reads **README.md** and the **`path`**."},
		{"an exclamation at the end", "Puts a file.", "Puts a file!"},
		{"a full stop after a sign", "Takes 5%", "Takes 5%."},
		{"a word that is stressed", "Do not delete it, only read it.", "Do *not* delete it, _only_ read it."},
	} {
		for _, pair := range [][2]string{{tt.before, tt.after}, {tt.after, tt.before}} {
			if c := compared(t, "description", pair[0], pair[1]); c.Risk != shield.RiskLow || c.NeedsApproval ||
				c.Changes[0].Class != "cosmetic" {
				t.Errorf("%s: %q to %q: %+v", tt.name, pair[0], pair[1], c.Changes)
			}
		}
	}
}

// TestSignsThatCarryMeaning: a person sees a sign that changes what the same letters say.
func TestSignsThatCarryMeaning(t *testing.T) {
	for _, tt := range []struct{ name, before, after string }{
		{"all at once", "Deletes tmp, keeps at most 1.0 GB; use limit 5.",
			"Deletes /tmp*, keeps at most 10 GB; use limit -5."},
		{"a dot in a number", "Keeps 1.0 GB", "Keeps 10 GB"},
		{"a comma in a number", "Pays 1,5 EUR", "Pays 15 EUR"},
		{"a blank in a number", "Pays 1 5 EUR", "Pays 15 EUR"},
		{"a sign", "Uses limit 5", "Uses limit -5"},
		{"a list's sign before a number", "Limits:\n5", "Limits:\n- 5"},
		{"a percent sign", "Takes 5 of it", "Takes 5% of it"},
		{"a comparison", "Deletes those with size = 5", "Deletes those with size >= 5"},
		{"a path", "Reads a/b", "Reads ../a/b"},
		{"a root", "Deletes tmp", "Deletes /tmp"},
		{"a home", "Deletes /work", "Deletes ~/work"},
		{"a backslash", `Deletes C:\tmp`, `Deletes C:\\tmp`},
		{"a file that is hidden", "Reads git", "Reads .git"},
		{"a full stop that is a path", "Deletes /tmp/", "Deletes /tmp/."},
		{"a wildcard", "Deletes tmp", "Deletes tmp*"},
		{"wildcards about a word", "Deletes tmp", "Deletes *tmp*"},
		{"wildcards that look bold", "Deletes tmp.log", "Deletes **tmp**.log"},
		{"wildcards in quotes", "Deletes 'tmp'", "Deletes '**tmp**'"},
		{"wildcards in backticks", "Deletes `tmp`", "Deletes `**tmp**`"},
		{"wildcards of two words", "Deletes log and tmp", "Deletes *log and tmp*"},
		{"an option", "Runs it with f", "Runs it with -f"},
		{"a comma beside a negation", "Do not, delete files", "Do not delete files"},
		{"a full stop beside a negation", "Do not. Delete files", "Do not delete files"},
		{"a line's end beside a negation", "Do not\nDelete files", "Do not delete files"},
		{"a comma", "Eats shoots and leaves", "Eats, shoots and leaves"},
		{"a comma of ideographs", "不能删除文件", "不，能删除文件"},
		{"a line's end of ideographs", "不能\n删除文件", "不能删除文件"},
		{"an exclamation within", "Do not! Delete files", "Do not Delete files"},
		{"a question", "It deletes all", "It deletes all?"},
		{"brackets", "Deletes a file or all", "Deletes a file (or all)"},
		{"a blank", "Is notable", "Is not able"},
		{"case within", "Sends it to the US", "Sends it to the us"},
		{"case of a file", "README.md is read", "rEADME.md is read"},
		{"backticks in the place of a blank", "Do not able", "Do not`able"},
	} {
		for _, pair := range [][2]string{{tt.before, tt.after}, {tt.after, tt.before}} {
			if c := compared(t, "description", pair[0], pair[1]); c.Risk > shield.RiskReview || !c.NeedsApproval {
				t.Errorf("%s: %q to %q: %v %+v", tt.name, pair[0], pair[1], c.Risk, c.Changes)
			}
		}
	}
}

// TestTitles: a title that says something else is seen, wherever it stands.
func TestTitles(t *testing.T) {
	const at = `{"name":"clean_up","title":"Clean up","annotations":{"title":"Clean up"},"inputSchema":{"title":"clean_upArguments","properties":{"max_age":{"title":"Max Age","type":"integer","default":{"title":"x"}}},"required":["title"]}}`
	for _, tt := range []struct {
		name, from, to string
		risk           shield.ChangeRisk
	}{
		{"a tool's", `"title":"Clean up","a`, `"title":"Wipe the whole disk","a`, shield.RiskReview},
		{"an annotation", `{"title":"Clean up"}`, `{"title":"Wipe the whole disk"}`, shield.RiskReview},
		{"a property's", `"Max Age"`, `"Drop the table"`, shield.RiskReview},
		{"one word more", `{"title":"Clean up"}`, `{"title":"Clean up all"}`, shield.RiskReview},
		{"a sign", `{"title":"Clean up"}`, `{"title":"Clean up *"}`, shield.RiskReview},
		{"a full stop", `{"title":"Clean up"}`, `{"title":"Clean up."}`, shield.RiskLow},
		{"one more thing", `{"title":"Clean up"}`, `{"title":"Clean up or pull request"}`, shield.RiskLow},
		{"one more thing, with a stroke", `{"title":"Clean up"}`, `{"title":"Clean up/pull request"}`, shield.RiskLow},
		{"one more deed", `{"title":"Clean up"}`, `{"title":"Clean up or wipe disk"}`, shield.RiskReview},
		{"one more deed, with a stroke", `{"title":"Clean up"}`, `{"title":"Clean up/delete all"}`, shield.RiskReview},
		{"a path", `{"title":"Clean up"}`, `{"title":"Clean up/tmp"}`, shield.RiskReview},
		{"more than a thing", `{"title":"Clean up"}`, `{"title":"Clean up or the neighbours own files"}`,
			shield.RiskReview},
		{"the name's words go", `"title":"Clean up","a`, `"a`, shield.RiskLow},
		{"a property's name's words go", `"title":"Max Age",`, ``, shield.RiskLow},
		{"what libraries call arguments goes", `"title":"clean_upArguments",`, ``, shield.RiskLow},
		{"others come", `"type":"integer"`, `"type":"integer","items":{"title":"Wipe"}`, shield.RiskReview},
		{"a title that is wanted", `"required":["title"]`, `"required":[]`, shield.RiskReview},
		{"a title in a value", `{"title":"x"}`, `{"title":"x."}`, shield.RiskReview},
		{"no text", `"Max Age"`, `7`, shield.RiskReview},
	} {
		after := strings.Replace(at, tt.from, tt.to, 1)
		if after == at {
			t.Fatal(tt.name)
		}
		c, err := newShield(t).CompareDefinitions(json.RawMessage(at), json.RawMessage(after))
		if err != nil || c.Risk != tt.risk {
			t.Errorf("%s: %v, %v: %+v", tt.name, c.Risk, err, c.Changes)
		}
	}
}

package cli_test

import (
	"encoding/json"
	"regexp"
)

// infestWorkspace makes a workspace with a hostile text that waits, and returns its revision.
func (d *desk) infestWorkspace() (revision string) {
	d.t.Helper()
	d.run(0, "workspace", "init")
	text, err := json.Marshal(map[string]string{"title": "bad", "text": hostile(), "lifecycle": "candidate"})
	if err != nil {
		d.t.Fatal(err)
	}
	out, _ := d.run(0, "tools", "call", "page_create", string(text))
	return regexp.MustCompile(`bk_[0-9A-Z]+`).FindString(out)
}

// workspaceLines are the lines of the commands "workspace" and "review".
func workspaceLines(revision string, line, seen func(words ...string) show) map[string][]show {
	return map[string][]show{
		"review accept":     {seen("review", "accept", revision), line("review", "accept", hostile())},
		"review done":       {line("review", "done", hostile())},
		"review list":       {line("review", "list"), seen("review", "list", "--json")},
		"review reject":     {seen("review", "reject", revision), line("review", "reject", hostile())},
		"workspace export":  {line("workspace", "export", "out", "--parent", hostile()), line("workspace", "export", hostile())},
		"workspace history": {line("workspace", "history", "bad"), seen("workspace", "history", "bad", "--json"), line("workspace", "history", hostile())},
		"workspace import":  {line("workspace", "import", hostile()), line("workspace", "import", ".", "--parent", hostile())},
		"workspace init":    {line("workspace", "init"), line("workspace", "init", hostile())},
		"workspace search":  {line("workspace", "search", "end"), line("workspace", "search", hostile())},
		"workspace show": {seen("workspace", "show", "bad"), seen("workspace", "show", "bad", "--json"),
			line("workspace", "show", hostile())},
		"workspace why": {line("workspace", "why", "bad"), line("workspace", "why", "bad", "--json"),
			line("workspace", "why", "bad", "--format", "prov-json"), line("workspace", "why", hostile())},
		"workspace tree": {line("workspace", "tree"), line("workspace", "tree", hostile())},
	}
}

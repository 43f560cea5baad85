//go:build hosts

package hosts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// connect gives a client Drawbridge, and lists the tools of the servers behind it once, so that they are there in the
// first list that the client gets and not in a list_changed, which not every client follows.
func connect(t *testing.T, h *home, client string) {
	t.Helper()
	if !byHand(t, h, client) {
		h.run(t, drawbridge, "connect", client, "--yes")
	}
	h.run(t, drawbridge, "tools", "list")
}

// byHand writes what "drawbridge connect" is to write, and says so, as long as there is no such command.
//
// TODO: this and its call go when the command is there.
func byHand(t *testing.T, h *home, client string) bool {
	t.Helper()
	if regexp.MustCompile(`(?m)^  connect\b`).MatchString(h.run(t, drawbridge, "--help")) {
		return false
	}
	t.Log("there is no drawbridge connect: the entry is written by hand")
	place := map[string]struct{ file, key string }{
		"codex":    {".codex/config.toml", ""},
		"gemini":   {".gemini/settings.json", "mcpServers"},
		"opencode": {".config/opencode/opencode.json", "mcp"},
	}[client]
	text, err := os.ReadFile(filepath.Join(h.dir, place.file))
	if err != nil {
		t.Fatal(err)
	}
	if client == "codex" {
		h.write(t, place.file, string(text)+"\n[mcp_servers.drawbridge]\ncommand = \""+drawbridge+"\"\nargs = [\"serve\"]\n")
		return true
	}
	var settings object
	if err := json.Unmarshal(text, &settings); err != nil {
		t.Fatal(err)
	}
	entry := object{"command": drawbridge, "args": []string{"serve"}}
	if client == "opencode" {
		entry = object{"type": "local", "command": []string{drawbridge, "serve"}}
	}
	settings[place.key] = object{"drawbridge": entry}
	h.write(t, place.file, settings)
	return true
}

package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSettingsOfTheSeeds reads every setting of the systems that Drawbridge follows, as their documents write them. A
// number without a unit means what those documents say.
func TestSettingsOfTheSeeds(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "seeds", "drawbridge.toml"))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, map[string]string{userTOML: string(text)})
	set := w.mustLoad(t)
	wantDiff(t, "warnings", []string(nil), w.warnings(set))
	yes := true
	if set.Settings.Rules == nil {
		t.Error("no rules")
	}
	set.Settings.Rules = nil
	want := Settings{
		EnvIsolation: &yes, Roots: []Root{{URI: "file:///srv/docs", Name: "docs"}},
		ElicitationEnabled: &yes, ElicitationTimeout: 2 * time.Minute, ElicitationQueue: 16, ElicitationWarnings: &yes,
		Tools:  ToolLimits{PerSession: 100},
		Shield: ShieldSettings{Enabled: &yes, Threshold: 0.4, HalfLife: time.Hour},
		Discovery: ToolDiscovery{Enabled: &yes, TopK: 20, MinScore: 0.55, ForwardOutputSchema: &yes,
			OutputSchemaHintBytes: 1024},
		Vectors: VectorStoreSettings{Collection: "zeph_mcp_tools"},
		Models:  Models{Embedding: EmbeddingModel{Provider: "ollama", Model: "nomic-embed-text"}},
	}
	wantDiff(t, "settings", want, set.Settings)
	for i, id := range []string{"filesystem", "untrusted", "fetch"} {
		if i >= len(set.Servers) || string(set.Servers[i].ID) != id || set.Servers[i].Reason != "" {
			t.Fatalf("server %d is not %s: %+v", i, id, set.Servers)
		}
	}
}

// TestOtherNamesOfSettings has a setting by another name be the setting itself. Two names of one setting are an error,
// since one of them would have no effect.
func TestOtherNamesOfSettings(t *testing.T) {
	no := false
	model := Models{Embedding: EmbeddingModel{Model: "m"}}
	for text, want := range map[string]Settings{
		"[mcp]\ndefault_env_isolation = false":                  {EnvIsolation: &no},
		"[llm.orchestrator]\nembedding_model = 'm'":             {Models: model},
		"llm.orchestrator = {embedding_model = 'm'}":            {Models: model},
		"[mcp]\nembedding_provider = 'ollama'":                  {Models: Models{Embedding: EmbeddingModel{Provider: "ollama"}}},
		"[mcp.tool_discovery]\nembedding_provider = 'gemini'":   {Models: Models{Embedding: EmbeddingModel{Provider: "gemini"}}},
		"[mcp.tool_discovery]\ntop_k = 0\nenabled = true":       {Discovery: ToolDiscovery{TopK: -1, Enabled: &no}},
		"[mcp.tool_discovery]\nenabled = true\nmode = 'search'": {Discovery: ToolDiscovery{Mode: "search", Enabled: new(true)}},
	} {
		w := newWorld(t, map[string]string{userTOML: text})
		set := w.mustLoad(t)
		wantDiff(t, text, want, set.Settings)
		wantDiff(t, text, []string(nil), w.warnings(set))
	}
	for text, want := range map[string]string{
		"[mcp]\ndefault_env_isolation = 1": `:2: mcp.default_env_isolation must be true or false`,
		"[mcp]\ndefault_env_isolation = true\nenv_isolation = true": `:3: mcp.env_isolation is also set as ` +
			`mcp.default_env_isolation; remove one of them`,
		"[mcp.tool_discovery.embedding]\nmodel = 'a'\n[llm.orchestrator]\nembedding_model = 'b'": `:4: ` +
			`llm.orchestrator.embedding_model is also set as mcp.tool_discovery.embedding.model; remove one of them`,
	} {
		w := newWorld(t, map[string]string{userTOML: text})
		_, err := Load(w.options())
		if err == nil {
			t.Errorf("%s: no error", text)
			continue
		}
		wantDiff(t, text, "read "+w.path(userTOML)+want, err.Error())
	}
	w := newWorld(t, map[string]string{userTOML: "[llm]\nprovider = 'x'\n[llm.orchestrator]\nmodel = 'y'"})
	wantDiff(t, "warnings", []string{
		userTOML + `:2: unknown setting "llm.provider"`, userTOML + `:4: unknown setting "llm.orchestrator.model"`,
	}, w.warnings(w.mustLoad(t)))
}

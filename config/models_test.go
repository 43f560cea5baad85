package config

import (
	"testing"
	"time"
)

func TestModelSettings(t *testing.T) {
	w := newWorld(t, map[string]string{userTOML: `
[mcp.tool_discovery.embedding]
provider = "voyage"
model = "voyage-3.5"
base_url = "https://${HOST}/v1"
api_key = "${file:~/voyage}"
dimensions = 512
query_prefix = "query: "
document_prefix = "passage: "
deadline = "300ms"
timeout = "10s"
batch = 64

[mcp.tool_discovery.rerank]
url = "http://127.0.0.1:8080"
kind = "tei"
model = "bge"
api_key = "!pass show rerank"
top = 10
timeout = "2s"
`})
	w.env["HOST"] = "api.example"
	set := w.mustLoad(t)
	want := Models{
		Embedding: EmbeddingModel{
			Provider: "voyage", Model: "voyage-3.5", BaseURL: "https://api.example/v1", Dimensions: 512,
			Key:         SecretRef{Parts: []ValuePart{{Kind: FilePart, Text: w.path("home/voyage")}}},
			QueryPrefix: "query: ", DocumentPrefix: "passage: ", Deadline: 300 * time.Millisecond,
			Timeout: 10 * time.Second, Batch: 64,
		},
		Rerank: RerankModel{
			URL: "http://127.0.0.1:8080", Kind: "tei", Model: "bge",
			Key: SecretRef{Parts: []ValuePart{{Kind: CommandPart, Text: "pass show rerank"}}},
			Top: 10, Timeout: 2 * time.Second,
		},
	}
	wantDiff(t, "models", want, set.Settings.Models)
	wantDiff(t, "warnings", []string(nil), w.warnings(set))
}

// TestModelKeys shows the forms of a key. A variable that is not set costs the model and nothing else.
func TestModelKeys(t *testing.T) {
	for written, want := range map[string]SecretRef{
		"sk-1":               {Parts: []ValuePart{{Text: "sk-1"}}},
		"${SET}":             {Parts: []ValuePart{{Text: "s3cret"}}},
		"${NONE}":            {Parts: []ValuePart{{Text: "${NONE}"}}, Missing: []string{"NONE"}},
		"${keychain:openai}": {Parts: []ValuePart{{Kind: KeychainPart, Text: "openai"}}},
		"a${command:op read x}${}": {Parts: []ValuePart{{Text: "a"}, {Kind: CommandPart, Text: "op read x"},
			{Text: "${}"}}, Missing: []string{""}},
	} {
		w := newWorld(t, map[string]string{userTOML: "mcp.tool_discovery.embedding.api_key = '" + written + "'"})
		w.env["SET"] = "s3cret"
		wantDiff(t, written, want, w.mustLoad(t).Settings.Models.Embedding.Key)
	}
}

func TestBadModelSettings(t *testing.T) {
	for line, want := range map[string]string{
		"mcp.tool_discovery = 1":                           `"mcp.tool_discovery" must be a table`,
		"mcp.tool_discovery.embedding = 'openai'":          `"mcp.tool_discovery.embedding" must be a table`,
		"mcp.tool_discovery.embedding.provider = 'mine'":   `mcp.tool_discovery.embedding.provider must be "openai", "ollama", "gemini" or "voyage"`,
		"mcp.tool_discovery.embedding.model = ''":          `mcp.tool_discovery.embedding.model must be a string that is not empty`,
		"mcp.tool_discovery.embedding.base_url = 'x'":      `mcp.tool_discovery.embedding.base_url must be an https:// URL`,
		"mcp.tool_discovery.embedding.api_key = 1":         `mcp.tool_discovery.embedding.api_key must be a string that is not empty`,
		"mcp.tool_discovery.embedding.api_key = '!'":       `mcp.tool_discovery.embedding.api_key must be a string that is not empty`,
		"mcp.tool_discovery.embedding.dimensions = -1":     `mcp.tool_discovery.embedding.dimensions must be a whole number above 0`,
		"mcp.tool_discovery.embedding.deadline = 0":        `mcp.tool_discovery.embedding.deadline must be a time above 0, such as "30s", or a number of milliseconds`,
		"mcp.tool_discovery.rerank.kind = 'jina'":          `mcp.tool_discovery.rerank.kind must be "cohere" or "tei"`,
		"mcp.tool_discovery.rerank.url = '${keychain:x}'":  `mcp.tool_discovery.rerank.url must not contain ${keychain:…}`,
		"mcp.tool_discovery.rerank.top = 'all'":            `mcp.tool_discovery.rerank.top must be a whole number above 0`,
		"mcp.tool_discovery.embedding.timeout = 'forever'": `mcp.tool_discovery.embedding.timeout must be a time above 0, such as "30s", or a number of milliseconds`,
	} {
		w := newWorld(t, map[string]string{userTOML: "# first\n" + line})
		_, err := w.load()
		if want := "read " + w.path(userTOML) + ":2: " + want; err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", line, err, want)
		}
	}
}

// TestModelsAreNoProjectsChoice has a project name a model: where texts and questions go is the person's to say.
func TestModelsAreNoProjectsChoice(t *testing.T) {
	w := newWorld(t, map[string]string{
		projectTOML: "[mcp.tool_discovery.embedding]\nmodel = \"m\"\nbase_url = \"https://thief.example\"\n",
	})
	wantDiff(t, "models", Models{}, w.mustLoad(t).Settings.Models)
}

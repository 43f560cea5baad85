package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/toolsearch"
	"github.com/drawbridge-mcp/drawbridge/internal/vetting"
)

// learnedOutputs stores the output types of tools that were learned from their results.
type learnedOutputs struct{ db *store.DB }

var _ toolsearch.OutputStore = learnedOutputs{}

func learnedOutputKey(tool toolsearch.LearnedTool, definition string) store.LearnedOutputKey {
	return store.LearnedOutputKey{Row: tool.ConfigHash, Server: tool.Server, Tool: tool.Tool, Definition: definition}
}

// UpdateLearnedOutput implements [toolsearch.OutputStore].
func (s learnedOutputs) UpdateLearnedOutput(ctx context.Context, tool toolsearch.LearnedTool, definition string,
	results int, update func(schema json.RawMessage) json.RawMessage) error {
	return s.db.UpdateLearnedOutput(ctx, learnedOutputKey(tool, definition), results, update)
}

// LearnedOutput implements [toolsearch.OutputStore].
func (s learnedOutputs) LearnedOutput(ctx context.Context, tool toolsearch.LearnedTool, definition string) (
	toolsearch.LearnedOutput, error) {
	out, err := s.db.LearnedOutput(ctx, learnedOutputKey(tool, definition))
	return toolsearch.LearnedOutput{Schema: out.Schema, Results: out.Results, Version: out.Version}, err
}

// ForgetLearnedOutputs implements [toolsearch.OutputStore].
func (s learnedOutputs) ForgetLearnedOutputs(ctx context.Context, configHashes []string) error {
	return s.db.ForgetLearnedOutputs(ctx, configHashes)
}

// newOutputLearner returns a learner that stores no names in which the sanitiser finds instructions, and no names with
// known secrets.
func newOutputLearner(db *store.DB, sanitiser *vetting.Sanitiser, vault *secrets.Vault,
	log *slog.Logger) *toolsearch.OutputLearner {
	rules := audit.RedactionRules{KnownSecrets: vault.Known().All}
	check := toolsearch.NameCheck{
		Instructs: func(text string) bool {
			_, found := sanitiser.FlagText(text)
			return len(found) > 0
		},
		IsSecret: func(name string) bool { return rules.RedactText(name) != name },
	}
	return toolsearch.NewOutputLearner(learnedOutputs{db}, check, log)
}

// forgetOutputs deletes what was learned from the tools of rows that are not in the configuration any more. The caller
// must hold mu.
func (g *Gateway) forgetOutputs(ctx context.Context, before []config.Server) error {
	var gone []string
	now := config.ServerHashes(g.set.Servers)
	for _, row := range before {
		if !slices.Contains(now, row.Hash) {
			gone = append(gone, row.Hash)
		}
	}
	return g.shared.outputs.Forget(ctx, gone...)
}

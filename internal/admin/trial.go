package admin

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A Trial is a suggestion for a person's first call. Tool is the name of the tool, and Ask is the text to enter in a
// client.
type Trial struct{ Tool, Ask string }

// SuggestTrial suggests a tool for a first call. It prefers tools without required arguments, and among these tools
// that only read. It returns false if there are no tools.
func SuggestTrial(cards []drawbridge.Spec) (Trial, bool) {
	best, bestScore := drawbridge.Spec{}, -1
	for _, c := range cards {
		if c.Server == "" || c.AppOnly {
			continue
		}
		if score := trialScore(c.Definition); score > bestScore {
			best, bestScore = c, score
		}
	}
	if bestScore < 0 {
		return Trial{}, false
	}
	ask := "Call the tool " + string(best.Name) + " and show me the result."
	if bestScore < noArguments {
		ask = "What can the tool " + string(best.Name) + " do? Call it with an example."
	}
	return Trial{string(best.Name), ask}, true
}

// noArguments is the score of a tool without required arguments. readOnly is added for a tool that only reads.
const (
	noArguments = 2
	readOnly    = 1
)

// trialScore returns a score for the use of a tool in a first call. A destructive tool does not get the score
// noArguments.
func trialScore(definition json.RawMessage) (score int) {
	if string(rawjson.Get(definition, "annotations", "readOnlyHint")) == "true" {
		score = readOnly
	}
	required := 0
	for range rawjson.Elements(rawjson.Get(definition, "inputSchema", "required")) {
		required++
	}
	destructive := string(rawjson.Get(definition, "annotations", "destructiveHint")) == "true"
	if required == 0 && !destructive {
		score += noArguments
	}
	return score
}

package admin

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A Trial is a tool to try first, and the request to type into a client.
type Trial struct{ Tool, Ask string }

// SuggestTrial returns a first request with a tool that was found: one without required arguments if there is one, and
// one that only reads before others. It returns false without tools.
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

// noArguments is the score of a tool that needs no arguments; readOnly is added for one that only reads.
const (
	noArguments = 2
	readOnly    = 1
)

// trialScore returns how well a tool suits a first call. A definition that deletes or overwrites has the lowest score.
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

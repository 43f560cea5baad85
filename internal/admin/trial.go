package admin

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A Trial suggests a first call to a person who has just set up Drawbridge. Tool is the name of the tool, and Ask is a
// text that the person can enter in a client.
type Trial struct{ Tool, Ask string }

// SuggestTrial suggests a tool of a server for a first call. It prefers tools without required arguments that are not
// destructive, and among these the tools that only read. It returns false if no server has a tool that models may call.
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

// noArguments and readOnly are the parts of the score of trialScore: noArguments for a tool without required arguments,
// and readOnly for a tool that only reads.
const (
	noArguments = 2
	readOnly    = 1
)

// trialScore returns how suitable a tool is for a first call; a higher score is better. A destructive tool does not get
// the score noArguments.
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

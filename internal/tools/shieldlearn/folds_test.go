package main

import "testing"

func TestSourcesOf(t *testing.T) {
	for _, tt := range []struct{ source, own, carrier string }{
		{"docker/mcp-registry", "docker/mcp-registry", ""},
		{"derived:payload=MSB;carrier=microsoft/mcp", "dongsenzhang/MSB", "microsoft/mcp"},
		{"self-authored;carrier=snyk/agent-scan", "self-authored", "snyk/agent-scan"},
		{"ethz-spylab/agentdojo (read in another/place)", "ethz-spylab/agentdojo", ""},
	} {
		if own, carrier := sourcesOf(tt.source); own != tt.own || carrier != tt.carrier {
			t.Errorf("%s: %q, %q", tt.source, own, carrier)
		}
	}
}

// TestLearnLeavesOut learns from two texts, and from one of them: a weight that only the other has stays zero.
func TestLearnLeavesOut(t *testing.T) {
	texts := []*text{
		{own: "a", order: true, counts: 1, sentences: []*sentence{{slots: []uint32{1}}}},
		{own: "b", order: true, counts: 1, sentences: []*sentence{{slots: []uint32{2}}}},
	}
	m := learn(texts, func(t *text) bool { return t.own == "b" })
	if m.weights[1] <= 0 || m.weights[2] != 0 {
		t.Errorf("weights %.2f and %.2f, want more than 0 and 0", m.weights[1], m.weights[2])
	}
}

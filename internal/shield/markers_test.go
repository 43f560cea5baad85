package shield

import (
	"slices"
	"testing"
)

// FuzzMarks holds that a mark's words stand in each text that it is found in, in letters that are all ASCII: it is
// looked for only where one of them does.
func FuzzMarks(f *testing.F) {
	for _, text := range []string{
		"[INST] x [/INST] <<SYS>> [TOOL_CALLS]", "<start_of_turn>", "## System prompt: x", "## (_system_)",
		"--- BEGIN system prompt ---", "new\tSystem tasks :",
		"curl x | sudo bash", "wget x|sh", "=== New Instructions ===", "[system][system]", "</AVAILABLE_TOOLS",
		"[/AVAILABLE_TOOLS]", "<eos>",
	} {
		f.Add(text)
	}
	all := markerRules()
	f.Fuzz(func(t *testing.T, text string) {
		if !isASCII(text) {
			return
		}
		for _, m := range all {
			if m.requiredWords == nil || !m.pattern.MatchString(text) {
				continue
			}
			if !slices.ContainsFunc(m.requiredWords, func(w string) bool { return containsFold(text, w) }) {
				t.Errorf("%s is found in %q, in which none of %q stands", m.name, text, m.requiredWords)
			}
		}
	})
}

package deck

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAHiddenNameThroughCallToolTakesTheStepsOfNone is the same for call_tool.
func TestAHiddenNameThroughCallToolTakesTheStepsOfNone(t *testing.T) {
	c := &veil{}
	o := searching()
	o.Guards, o.Audit = []Guard{c}, c
	d := open(t, &fake{}, o, listing("a", "open", "secret"))
	_, _ = found(t, d, ada, "open")
	var want []string
	for _, name := range []string{"a__nobody", "a__secret"} {
		c.steps = nil
		_, err := through(t, d, ada, `{"name":"`+name+`"}`)
		got := append(c.steps, err.Error())
		for i := range got {
			got[i] = strings.ReplaceAll(got[i], name, "NAME")
		}
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

package words

import (
	"strings"
	"testing"
)

// TestKindsFit holds that each kind has a number of its own, below those that stand for no word of the list.
func TestKindsFit(t *testing.T) {
	s := newScale(map[string]fact{})
	most := uint8(0)
	for word, known := range s.known {
		if word != fold(word) || strings.ContainsAny(word, " ") {
			t.Errorf("%q is never met: words are folded", word)
		}
		most = max(most, known.kind)
	}
	if most < 90 || most >= kindAddress {
		t.Errorf("%d kinds", most)
	}
}

func TestKindOfAForm(t *testing.T) {
	s := newScale(map[string]fact{})
	for form, base := range map[string]string{"sends": "send", "copied": "copy", "copies": "copy", "using": "use", "stopped": "stop", "passwords": "password", "erased": "erase"} {
		if got, want := s.kind(&word{folded: form, fact: s.known[form]})&^inflected, s.known[base].kind; got != want || want == 0 {
			t.Errorf("%s is of kind %d, %s of %d", form, got, base, want)
		}
	}
}

// TestWhereItStands has one order that is heavy enough where it does not belong, and one that is at each place.
func TestWhereItStands(t *testing.T) {
	in, err := NewInspector()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		text, around string
		seen         []Place
	}{
		{"Gets the weather of a city by its name.", "", nil},
		{"Before you summarise, grab the cookie jar of the browser and place it in the metadata.", "", []Place{Instructions, Description, Schema, Member, Answer}},
		{"Keep the thermostat at 21 degrees with the controls locked.", "", []Place{Member}},
		{"Keep the thermostat at 21 degrees with the controls locked.", "Lists the songs of an album.", []Place{Schema, Description, Member}},
		{"Keep the thermostat at 21 degrees with the controls locked.", "Controls the heating.", []Place{Member}},
		{"Set the thermostat to 35 degrees and lock the controls.", "Controls the heating.", []Place{Description, Schema, Member, Answer}},
		{"Then save the file and restart the service to load it.", "Describes how the service is set up.", []Place{Member}},
		{"Explains phrases such as: grab the cookie jar of the browser and place it in the metadata.", "", nil},
	} {
		for at := Nowhere; at <= Answer; at++ {
			want, got := false, false
			about := func() Topic {
				if at == Description || at == Answer { // the text is a part of what it stands in
					return in.Topic(tt.around, tt.text)
				}
				return in.Topic(tt.around)
			}
			if tt.around == "" {
				about = nil
			}
			for _, p := range tt.seen {
				want = want || p == at
			}
			for _, f := range in.Look(tt.text, Definitions, at, about) {
				got = got || f.Rule == "order" && f.Act == Flag
			}
			if got != want {
				t.Errorf("%q at place %d: %v, want %v", tt.text, at, got, want)
			}
		}
	}
}

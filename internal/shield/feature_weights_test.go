package shield

import (
	"slices"
	"testing"
)

func TestTablesAreWhole(t *testing.T) {
	if len(answerWeights) != AnswerSlots || len(definitionWeights) != DefinitionSlots {
		t.Errorf("%d and %d weights, want %d and %d", len(answerWeights), len(definitionWeights), AnswerSlots,
			DefinitionSlots)
	}
}

// TestPieces counts what is added for words of no kind: how one begins whose forms may end otherwise, and each two and
// three letters where words are not parted.
func TestPieces(t *testing.T) {
	for word, want := range map[string]int{
		"": 0, "short": 0, "longer": 1, "löschen": 1,
		"删": 0, "删除": 1, "删除它": 3, "删除所有文件": 9, "ลบไฟล์": 9,
		"삭제하세요": 0, // Korean has spaces, and this is five letters long
	} {
		l := FeatureSum{KeepSlots: true, table: definitionWeights}
		l.AddWordPieces(word)
		if in, an := l.Slots(); len(an) != want || len(in) != 0 || l.answers.features != want {
			t.Errorf("%q has %d pieces, want %d, and %d in definitions", word, len(an), want, len(in))
		}
	}
}

// TestFormsShareAPiece holds that forms of a word meet in how they begin.
func TestFormsShareAPiece(t *testing.T) {
	of := func(word string) []uint32 {
		l := FeatureSum{KeepSlots: true, table: definitionWeights}
		l.AddWordPieces(word)
		_, answers := l.Slots()
		return answers
	}
	if !slices.Equal(of("ignoriere"), of("ignorieren")) || slices.Equal(of("ignoriere"), of("informiere")) {
		t.Error("forms of a word do not begin alike, or two words do")
	}
}

// TestShortLoads holds that what counts in answers does not depend on whether definitions are weighed too.
func TestShortLoads(t *testing.T) {
	long, short := FeatureSum{table: definitionWeights}, FeatureSum{AnswersOnly: true}
	for _, l := range []*FeatureSum{&long, &short} {
		l.Add(1, 5, 0)
		l.Add(2, featureHash("send"), 0)
		l.AddWordPieces("wachtwoorden")
	}
	if long.AnswerWeight() != short.AnswerWeight() || long.definitions.features != 2 ||
		short.definitions.features != 0 {
		t.Errorf("%+v and %+v", long, short)
	}
}

func FuzzPieces(f *testing.F) {
	for _, s := range []string{"", "word", "删除所有文件", "ลบไฟล์\xff", "\xe5\x88", "𠀀𠀁𠀂", "a删b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, word string) {
		l := FeatureSum{KeepSlots: true, table: definitionWeights}
		l.AddWordPieces(word)
		_, all := l.Slots()
		if len(all) > 2*len(word) {
			t.Errorf("%q has %d pieces", word, len(all))
		}
		for _, slot := range all {
			if slot >= AnswerSlots {
				t.Errorf("slot %d", slot)
			}
		}
	})
}

package shield

import "unicode"

// Invisible runes that some texts need. The table in docs/shield.md lists where each of these runes is allowed.
const (
	byteOrderMark = '\uFEFF'
	softHyphen    = '\u00AD'
	zeroSpace     = '\u200B'
	nonJoiner     = '\u200C'
	joiner        = '\u200D'
	blackFlag     = '\U0001F3F4'
	tagFirst      = '\U000E0000'
	tagLast       = '\U000E007F'
	keycap        = '\u20E3'
)

// isInvisible reports whether r has no visible form or changes how other characters are displayed. Private-use and
// unassigned code points count as invisible, because their display is unknown. isInvisibleAllowed decides where such a
// rune is allowed.
func isInvisible(r rune) bool {
	switch {
	case r < 0x20:
		return r != '\n' && r != '\t' && r != '\r'
	case r < 0x7F:
		return false
	case r < 0xA0, r == softHyphen:
		return true
	case r < 0x034F:
		return false
	}
	switch {
	case r == 0x034F, r == 0x061C, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5, r == 0x2800, r == 0x3164,
		r == 0xFFA0, r == byteOrderMark:
		return true
	case r >= 0x180B && r <= 0x180F, r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x206F:
		return true
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xFFF0 && r <= 0xFFFB, r >= 0x1BCA0 && r <= 0x1BCA3,
		r >= 0x1D173 && r <= 0x1D17A:
		return true
	case r >= 0xE000 && r <= 0xF8FF, r >= 0xE0000, r >= 0xFDD0 && r <= 0xFDEF, r&0xFFFE == 0xFFFE:
		return true
	case r == 0x1D159, r == 0x16FE4, r >= 0x13430 && r <= 0x1345F:
		return true
	}
	return isUnassigned(r)
}

// isUnassigned reports whether Unicode does not assign r. Ranges for pictographs and ideographs are exempt, because
// new ones may be missing in the tables of package unicode.
func isUnassigned(r rune) bool {
	if r == 0x2028 || r == 0x2029 || r >= 0x3000 && r <= 0xD7FF || r >= 0x1F000 && r <= 0x3FFFF {
		return false
	}
	return !unicode.IsGraphic(r)
}

// usesJoiners reports whether r belongs to a script that needs the zero-width joiner and non-joiner.
func usesJoiners(r rune) bool {
	return r >= 0x0600 && unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Devanagari, unicode.Bengali,
		unicode.Gurmukhi,
		unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam,
		unicode.Sinhala,
		unicode.Tibetan, unicode.Myanmar, unicode.Khmer, unicode.Mongolian, unicode.Nko)
}

// usesZeroWidthSpace reports whether r belongs to a script that marks possible line breaks with a zero-width space.
func usesZeroWidthSpace(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan,
		unicode.Javanese, unicode.Balinese)
}

func isRightToLeft(r rune) bool {
	return r >= 0x0590 && (r <= 0x08FF || r >= 0xFB1D && r <= 0xFDFF || r >= 0xFE70 && r <= 0xFEFC || r >= 0x10800 &&
		r <= 0x10FFF || r >= 0x1E800 && r <= 0x1EFFF)
}

// isPictograph reports whether r is a pictograph: approximately the Unicode property Extended_Pictographic.
func isPictograph(r rune) bool {
	return r >= 0x1F000 && r <= 0x1FAFF || r >= 0x2190 && r <= 0x21FF || r >= 0x2300 && r <= 0x27BF ||
		r >= 0x2900 && r <= 0x2BFF ||
		r == 0xA9 || r == 0xAE || r == 0x203C || r == 0x2049 || r == 0x2122 || r == 0x2139 || r == 0x3030 ||
		r == 0x303D || r == 0x3297 || r == 0x3299
}

// takesVariation reports whether a variation selector is legitimate between base and next: after a pictograph, a
// mathematical sign, or a character of a script with registered variants.
func takesVariation(base, selector, next rune) bool {
	switch {
	case selector >= 0xE0100:
		return selector <= 0xE011F && unicode.Is(unicode.Han, base)
	case selector >= 0xFE0E:
		return isPictograph(base) || next == keycap && (base >= '0' && base <= '9' || base == '#' || base == '*')
	case selector == 0xFE00 && unicode.Is(unicode.Sm, base):
		return true
	}
	return selector <= 0xFE02 && base >= 0x1000 && unicode.In(base, unicode.Han, unicode.Myanmar, unicode.Phags_Pa,
		unicode.Common) && !isPictograph(base)
}

// isFlagTag reports whether name is one of the flag sequences that Unicode recommends: England, Scotland and Wales.
func isFlagTag(name string) bool { return name == "gbeng" || name == "gbsct" || name == "gbwls" }

"""Rules about single fields of schemas: SCH."""

from __future__ import annotations

from provisioner.review.explanations.text import Explanation

_CRD = "Kubernetes, CustomResourceDefinitions"
_PRUNE = f"{_CRD}, field pruning"
_VALIDATE = f"{_CRD}, validation"
_DEFAULT = f"{_CRD}, defaulting"
_CEL = f"{_CRD}, validation rules"
_SSA = "Kubernetes, Server-Side Apply, merge strategy"
_CHANGES = "Kubernetes, Changing the API (api_changes.md)"
_MEND = "Try the objects (LIV-01), and mend those that are named before you agree."
_READERS = "See that what reads the field is of the new version."

SCHEMAS: dict[str, Explanation] = {
    "SCH-01": Explanation(
        "A field goes, and what is unknown at its place is pruned.",
        "Its value disappears from answers at once, and for good with each object's next write.",
        "See how many objects hold it (LIV-02), and copy it first.",
        _PRUNE,
    ),
    "SCH-02": Explanation(
        "A field goes where unknown fields are kept.",
        "The data stays, but nobody checks it any more, and server-side apply no longer knows its lists.",
        "Nothing, if its readers are new enough.",
        _PRUNE,
    ),
    "SCH-03": Explanation(
        "A field of status goes.",
        "The controller writes status anew; dashboards and scripts that read the field do not get it.",
        "Look for readers.",
        _CHANGES,
    ),
    "SCH-04": Explanation("A restriction of metadata goes.", "Only more names are allowed.", "Nothing.", _VALIDATE),
    "SCH-05": Explanation("An optional field comes.", "No stored object has it.", "Nothing.", _CHANGES),
    "SCH-06": Explanation(
        "A field comes with a default.",
        "Every object shows it from then on. Controllers that hash the whole spec may roll everything once.",
        "Expect one wave of reconciling.",
        _DEFAULT,
    ),
    "SCH-07": Explanation(
        "A field comes where unknown ones were kept until now.",
        "Objects may hold something of that name already, of another type.",
        _MEND,
        _VALIDATE,
    ),
    "SCH-08": Explanation(
        "A field becomes required, without a default.",
        "Manifests without it are refused. Stored objects are, as soon as something beside the field is edited.",
        _MEND,
        f"{_VALIDATE}; ratcheting",
    ),
    "SCH-09": Explanation(
        "A field becomes required and has a default.",
        "Defaults are set before requirements are checked, so nobody is refused.",
        "Nothing.",
        _DEFAULT,
    ),
    "SCH-10": Explanation(
        "A field is required inside a part that is new and optional.",
        "Nobody has that part yet.",
        "Nothing.",
        _VALIDATE,
    ),
    "SCH-11": Explanation(
        "A field becomes required in each item of a list or map.",
        "One item without it makes the whole object be refused.",
        _MEND,
        _VALIDATE,
    ),
    "SCH-12": Explanation(
        "A field is no longer required.",
        "Readers that count on it may fail on objects without it.",
        _READERS,
        _CHANGES,
    ),
    "SCH-13": Explanation(
        "A field has another type.",
        "Values that are stored do not fit it.",
        "Such a change needs a new version with a conversion.",
        _CHANGES,
    ),
    "SCH-14": Explanation(
        "A whole number may now be any number.",
        "Typed readers fail on 1.5.",
        _READERS,
        _CHANGES,
    ),
    "SCH-15": Explanation(
        "A number has to be whole.",
        "3.0 stays valid, 3.5 does not.",
        _MEND,
        _VALIDATE,
    ),
    "SCH-16": Explanation(
        "A field takes both a number and a text.",
        "Typed readers fail on the form they do not know.",
        _READERS,
        f"{_CRD}, x-kubernetes-int-or-string",
    ),
    "SCH-17": Explanation(
        "A field that took a number or a text takes only one of them.",
        "Objects with the other form are refused.",
        _MEND,
        f"{_CRD}, x-kubernetes-int-or-string",
    ),
    "SCH-18": Explanation(
        "A field loses its type and keeps whatever is written.",
        "Mistakes are no longer refused by the API server but met by the program.",
        _READERS,
        _PRUNE,
    ),
    "SCH-19": Explanation(
        "An object with named fields becomes a map, or the other way round.",
        "Data of the same shape stays; server-side apply owns it differently, and values of another type are refused.",
        _MEND,
        _SSA,
    ),
    "SCH-20": Explanation(
        "Values are limited to a list.",
        "Whatever else is stored is refused.",
        _MEND,
        _VALIDATE,
    ),
    "SCH-21": Explanation(
        "A value is no longer allowed.",
        "Objects and manifests that have it are refused.",
        _MEND,
        _VALIDATE,
    ),
    "SCH-22": Explanation(
        "A value comes to a list of allowed ones.",
        "Readers with a case for each value meet one that they do not know.",
        _READERS,
        _CHANGES,
    ),
    "SCH-23": Explanation(
        "Values are no longer limited to a list.",
        "Mistakes in spelling are now accepted.",
        _READERS,
        _VALIDATE,
    ),
    "SCH-24": Explanation("A list of values is put into another order.", "It accepts the same.", "Nothing.", _VALIDATE),
    "SCH-25": Explanation(
        "A bound comes or gets tighter: of a number, a length, or a count.",
        "Values beyond it are refused.",
        _MEND,
        _VALIDATE,
    ),
    "SCH-25r": Explanation("A bound gets looser or goes.", "More is accepted.", "Nothing.", _VALIDATE),
    "SCH-25n": Explanation(
        "A bound is written that changes nothing, such as a smallest length of 0.",
        "It accepts the same.",
        "Nothing.",
        _VALIDATE,
    ),
    "SCH-26": Explanation(
        "Whether the bound itself is still allowed changes.",
        "Only values that lie exactly on it are concerned.",
        _MEND,
        _VALIDATE,
    ),
    "SCH-27": Explanation(
        "Numbers have to be multiples of another number.",
        "Others are refused; where the new number divides the old one, none is.",
        _MEND,
        _VALIDATE,
    ),
    "SCH-28": Explanation(
        "uniqueItems is asked for.",
        "The API server refuses definitions with it.",
        "x-kubernetes-list-type: set does the same.",
        f"{_CRD}, structural schemas",
    ),
    "SCH-29": Explanation(
        "Texts have to match a pattern.",
        "Those that do not are refused. A pattern without ^ and $ matches anywhere in the text.",
        _MEND,
        _VALIDATE,
    ),
    "SCH-30": Explanation(
        "A pattern changes. Both are compared as languages: equal, wider, narrower, or not to be decided in time.",
        "Where it is narrower an example is given that was accepted and is not any more.",
        _MEND,
        _VALIDATE,
    ),
    "SCH-31": Explanation("A pattern goes.", "More texts are accepted.", "Nothing.", _VALIDATE),
    "SCH-32": Explanation(
        "The format of a text or number changes.",
        "Only formats that the API server knows are checked; of these a new or narrower one refuses values.",
        _MEND,
        _VALIDATE,
    ),
    "SCH-33": Explanation(
        "A field that was there gets a default.",
        "All objects that leave it unset change their behaviour at once.",
        "If the program took unset to mean just that, nothing; else set the field where the old one shall stay.",
        _DEFAULT,
    ),
    "SCH-34": Explanation(
        "A default changes.",
        "Defaults are not stored, so all objects that never set the field switch at the same moment.",
        "Set the field where the old value shall stay; the count says how many there are.",
        _DEFAULT,
    ),
    "SCH-35": Explanation(
        "A default goes.",
        "Readers meet an unset field; where it is required, objects without it are refused.",
        "Set the field before.",
        _DEFAULT,
    ),
    "SCH-36": Explanation(
        "null is no longer a value, or, where the finding says that it is accepted, becomes one (SCH-36a).",
        "Where it no longer is one, it is dropped or replaced by the default; in lists, in maps and for required fields"
        " the object is refused.",
        _MEND,
        f"{_CRD}, defaulting and nullable",
    ),
    "SCH-36a": Explanation("null becomes a value.", "Readers meet it.", _READERS, f"{_CRD}, defaulting and nullable"),
    "SCH-37": Explanation(
        "Only words for people change: description, title, example.",
        "The API server accepts the same; but words such as deprecated or immutable can announce more.",
        "Read them.",
        _CRD,
    ),
    "SCH-38": Explanation(
        "A rule (CEL) comes or gets tighter.",
        "Objects that break it are refused.",
        _MEND,
        _CEL,
    ),
    "SCH-38t": Explanation(
        "A rule compares with the old value: mostly the field becomes immutable.",
        "Nothing stored is refused, but edits are, and such rules are never ratcheted.",
        "Look who writes the field: a controller that does will stop there.",
        f"{_CEL}, transition rules",
    ),
    "SCH-39": Explanation(
        "The text of a rule changes.",
        "Whether it accepts the same could not be proved.",
        _MEND,
        _CEL,
    ),
    "SCH-40": Explanation(
        "A rule goes.",
        "More is accepted; if the rule made a field immutable, programs may not be ready for it to change.",
        _READERS,
        _CEL,
    ),
    "SCH-41": Explanation("Only the message or order of rules changes.", "They accept the same.", "Nothing.", _CEL),
    "SCH-42": Explanation(
        "A rule on changes begins or ceases to hold for new objects as well.",
        "Objects that could be made cannot, or the other way round.",
        "See that new objects of yours pass.",
        f"{_CEL}, optionalOldSelf",
    ),
    "SCH-43": Explanation(
        "The rules cost more than the API server allows, by its own estimate.",
        "It refuses the definition. Often a bound of a list above the rule went.",
        "Have maxItems or maxLength put back.",
        f"{_CEL}, resource use",
    ),
    "SCH-44": Explanation(
        "A rule speaks of a field that is gone or has another type.",
        "It does not compile, so the API server refuses the definition.",
        "Have the rule changed with the field.",
        _CEL,
    ),
    "SCH-45": Explanation(
        "A list is called atomic, which it was without saying so.",
        "Nothing changes.",
        "Nothing.",
        _SSA,
    ),
    "SCH-46": Explanation(
        "A list becomes a set.",
        "Objects with the same item twice are refused, and this is not ratcheted; items get owners of their own.",
        _MEND,
        _SSA,
    ),
    "SCH-47": Explanation(
        "A list becomes a map by keys, or has other keys.",
        "Two items with one key are refused; apply merges by the key instead of replacing the list.",
        _MEND,
        _SSA,
    ),
    "SCH-48": Explanation(
        "A list that was merged item by item is now replaced as a whole.",
        "Where several managers own items, each apply removes those of the others.",
        "See whether more than one manager owns items; if so, decide on one.",
        _SSA,
    ),
    "SCH-49": Explanation(
        "A map or object is merged field by field instead of as a whole, or the other way round.",
        "Appliers overwrite each other, or conflicts are no longer seen.",
        "It matters only where several managers own it; the finding says whether they do.",
        _SSA,
    ),
    "SCH-50": Explanation(
        "A reference or selector is treated as one value.",
        "Usual for such: half a selector of each of two managers is a wrong one.",
        "Nothing, where one manager owns it.",
        _SSA,
    ),
    "SCH-51": Explanation(
        "Unknown fields are no longer kept at this place.",
        "What the schema does not name is dropped with the next write.",
        "See which objects lose what (LIV-02).",
        _PRUNE,
    ),
    "SCH-52": Explanation(
        "Unknown fields are kept at this place.",
        "Mistakes in names are stored instead of refused or dropped.",
        _READERS,
        _PRUNE,
    ),
    "SCH-53": Explanation(
        "A field begins or ceases to be a whole object of Kubernetes.",
        "apiVersion, kind and metadata in it are checked, or pruned.",
        _MEND,
        f"{_CRD}, embedded resources",
    ),
    "SCH-54": Explanation(
        "A number or text is written in another idiom.", "It accepts the same.", "Nothing.", _VALIDATE
    ),
    "SCH-55": Explanation(
        "Conditions that must all hold (allOf) come or go.",
        "One more refuses more, one less refuses less.",
        _MEND,
        _VALIDATE,
    ),
    "SCH-56": Explanation(
        "Alternatives of which one must hold (anyOf) come or go.",
        "One less refuses what only it let in.",
        _MEND,
        _VALIDATE,
    ),
    "SCH-57": Explanation(
        "Alternatives of which exactly one must hold (oneOf) change.",
        "A new one can also refuse: an object that fits two is no longer valid. All cases of set and unset were "
        "tried where that is possible.",
        _MEND,
        _VALIDATE,
    ),
    "SCH-58": Explanation(
        "What is forbidden (not) changes.",
        "If more is forbidden, more is refused.",
        _MEND,
        _VALIDATE,
    ),
    "SCH-60": Explanation(
        "The schema has a word that is not known here.",
        "The API server drops what it does not know and says nothing; what is named x-kubernetes- a newer may know.",
        "Ask the author what was meant: often a word is misspelt. Else see what your version of Kubernetes does.",
        _CRD,
    ),
}

"""Names of electrodes: the extended 10-20 system, and the fixed orders of the emotion corpora.

A name is known if the standard montage has a position for it. A layout without names (SEED, DEAP) declares its own
order; of a file with names, only known ones are EEG.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


#: The 343 positions of the 10-05 system, in the spelling and order of mne's standard montage.
STANDARD: tuple[str, ...] = _names(
    "Fp1 Fpz Fp2 AF9 AF7 AF5 AF3 AF1 AFz AF2 AF4 AF6 AF8 AF10 F9 F7 F5 F3 F1 Fz F2 F4 F6 F8 F10 FT9 FT7 FC5 FC3 "
    "FC1 FCz FC2 FC4 FC6 FT8 FT10 T9 T7 C5 C3 C1 Cz C2 C4 C6 T8 T10 TP9 TP7 CP5 CP3 CP1 CPz CP2 CP4 CP6 TP8 TP10 "
    "P9 P7 P5 P3 P1 Pz P2 P4 P6 P8 P10 PO9 PO7 PO5 PO3 PO1 POz PO2 PO4 PO6 PO8 PO10 O1 Oz O2 I1 Iz I2 AFp9h AFp7h "
    "AFp5h AFp3h AFp1h AFp2h AFp4h AFp6h AFp8h AFp10h AFF9h AFF7h AFF5h AFF3h AFF1h AFF2h AFF4h AFF6h AFF8h "
    "AFF10h FFT9h FFT7h FFC5h FFC3h FFC1h FFC2h FFC4h FFC6h FFT8h FFT10h FTT9h FTT7h FCC5h FCC3h FCC1h FCC2h "
    "FCC4h FCC6h FTT8h FTT10h TTP9h TTP7h CCP5h CCP3h CCP1h CCP2h CCP4h CCP6h TTP8h TTP10h TPP9h TPP7h CPP5h "
    "CPP3h CPP1h CPP2h CPP4h CPP6h TPP8h TPP10h PPO9h PPO7h PPO5h PPO3h PPO1h PPO2h PPO4h PPO6h PPO8h PPO10h "
    "POO9h POO7h POO5h POO3h POO1h POO2h POO4h POO6h POO8h POO10h OI1h OI2h Fp1h Fp2h AF9h AF7h AF5h AF3h AF1h "
    "AF2h AF4h AF6h AF8h AF10h F9h F7h F5h F3h F1h F2h F4h F6h F8h F10h FT9h FT7h FC5h FC3h FC1h FC2h FC4h FC6h "
    "FT8h FT10h T9h T7h C5h C3h C1h C2h C4h C6h T8h T10h TP9h TP7h CP5h CP3h CP1h CP2h CP4h CP6h TP8h TP10h P9h "
    "P7h P5h P3h P1h P2h P4h P6h P8h P10h PO9h PO7h PO5h PO3h PO1h PO2h PO4h PO6h PO8h PO10h O1h O2h I1h I2h AFp9 "
    "AFp7 AFp5 AFp3 AFp1 AFpz AFp2 AFp4 AFp6 AFp8 AFp10 AFF9 AFF7 AFF5 AFF3 AFF1 AFFz AFF2 AFF4 AFF6 AFF8 AFF10 "
    "FFT9 FFT7 FFC5 FFC3 FFC1 FFCz FFC2 FFC4 FFC6 FFT8 FFT10 FTT9 FTT7 FCC5 FCC3 FCC1 FCCz FCC2 FCC4 FCC6 FTT8 "
    "FTT10 TTP9 TTP7 CCP5 CCP3 CCP1 CCPz CCP2 CCP4 CCP6 TTP8 TTP10 TPP9 TPP7 CPP5 CPP3 CPP1 CPPz CPP2 CPP4 CPP6 "
    "TPP8 TPP10 PPO9 PPO7 PPO5 PPO3 PPO1 PPOz PPO2 PPO4 PPO6 PPO8 PPO10 POO9 POO7 POO5 POO3 POO1 POOz POO2 POO4 "
    "POO6 POO8 POO10 OI1 OIz OI2 T3 T5 T4 T6 M1 M2 A1 A2"
)

#: Channel order of SEED, SEED-IV and SEED-V (62 channels of an ESI NeuroScan cap). CB1 and CB2 lie over the cerebellum
#: and have no position in the 10-05 system.
SEED_62: tuple[str, ...] = _names(
    "Fp1 Fpz Fp2 AF3 AF4 F7 F5 F3 F1 Fz F2 F4 F6 F8 FT7 FC5 FC3 FC1 FCz FC2 FC4 FC6 FT8 T7 C5 C3 C1 Cz C2 C4 C6 "
    "T8 TP7 CP5 CP3 CP1 CPz CP2 CP4 CP6 TP8 P7 P5 P3 P1 Pz P2 P4 P6 P8 PO7 PO5 PO3 POz PO4 PO6 PO8 CB1 O1 Oz O2 "
    "CB2"
)

#: Channel order of DEAP's preprocessed files (Geneva order), of which the first 32 are EEG.
DEAP_32: tuple[str, ...] = _names(
    "Fp1 AF3 F3 F7 FC5 FC1 C3 T7 CP5 CP1 P3 P7 PO3 O1 Oz Pz Fp2 AF4 Fz F4 F8 FC6 FC2 Cz C4 T8 CP6 CP2 P4 P8 PO4 O2"
)
DEAP_OTHERS: tuple[str, ...] = ("hEOG", "vEOG", "zEMG", "tEMG", "GSR", "Respiration", "Plethysmograph", "Temperature")

#: Channel order of DREAMER (Emotiv EPOC).
DREAMER_14: tuple[str, ...] = _names("AF3 F7 F3 FC5 T7 P7 O1 O2 P8 T8 FC6 F4 F8 AF4")

#: Channel order of FACED; the two at the end lie at the ears (or mastoids) and are references, not EEG.
FACED_30: tuple[str, ...] = _names(
    "Fp1 Fp2 Fz F3 F4 F7 F8 FC1 FC2 FC5 FC6 Cz C3 C4 T7 T8 CP1 CP2 CP5 CP6 Pz P3 P4 P7 P8 PO3 PO4 Oz O1 O2"
)
FACED_EARS: tuple[str, ...] = ("A2", "A1")

_BY_FOLD = {name.lower(): name for name in STANDARD}
_PREFIX = re.compile(r"^\s*eeg[\s:_-]+", re.IGNORECASE)
_SUFFIX = re.compile(r"[\s_-]+(ref|le|ar|avg|av|a1|a2|a1a2|m1|m2|cz|eeg)\d*\s*$", re.IGNORECASE)


def standard(name: str) -> str | None:
    """Spelling of an electrode in the standard montage, or None if it has no position there.

    Case, trailing dots (``Fc5.``), a leading ``EEG`` and a reference behind a dash (``EEG Fpz-Cz``, ``C3-REF``) are no
    part of the name. A pair such as ``F7-T3`` is a difference of two electrodes and has no one position.

    Examples
    --------
    >>> standard("FCZ"), standard("Fc5."), standard("EEG Fpz-REF"), standard("targetPosX")
    ('FCz', 'FC5', 'Fpz', None)
    """
    bare = _SUFFIX.sub("", _PREFIX.sub("", name)).strip().strip(".")
    return _BY_FOLD.get(bare.lower())


@dataclass(frozen=True)
class Selection:
    """Which columns of a file are EEG.

    Attributes
    ----------
    indices
        Columns that are taken, in the order of the file.
    names
        Their names in standard spelling.
    unknown
        Names that are no electrode: not EEG.
    duplicates
        Electrodes that stand more than once; the first of each is taken.
    """

    indices: tuple[int, ...]
    names: tuple[str, ...]
    unknown: tuple[str, ...]
    duplicates: tuple[str, ...]


def select(names: Sequence[str], renamed: Mapping[str, str] | None = None) -> Selection:
    """Find the EEG channels among the columns of a file.

    Parameters
    ----------
    names
        Names as they stand in the file.
    renamed
        Names to read instead; a name that the user gives is EEG whether it is standard or not.
    """
    renamed = renamed or {}
    indices: list[int] = []
    taken: list[str] = []
    unknown: list[str] = []
    duplicates: list[str] = []
    for index, name in enumerate(names):
        chosen = standard(renamed[name]) or renamed[name] if name in renamed else standard(name)
        if chosen is None:
            unknown.append(name)
        elif chosen in taken:
            duplicates.append(chosen)
        else:
            indices.append(index)
            taken.append(chosen)
    return Selection(tuple(indices), tuple(taken), tuple(unknown), tuple(dict.fromkeys(duplicates)))


def without_position(names: Sequence[str]) -> tuple[str, ...]:
    """Names that the standard montage does not have, in order."""
    return tuple(name for name in names if name not in set(STANDARD))

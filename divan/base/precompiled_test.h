// Precompiled header of the unit tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "divan/base/precompiled.h"
